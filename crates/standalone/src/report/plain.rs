//! Values of the engine as JSON that people and programs can read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;

/// JSON, with histograms in the usual text form of HdrHistogram's encoding: base64.
pub(super) fn plain(value: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(value).unwrap_or(Value::Null);
    encode_bytes(&mut value);
    value
}

fn encode_bytes(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match bytes(field) {
                    Some(bytes) if ["encoded", "data"].contains(&name.as_str()) => {
                        *field = STANDARD.encode(bytes).into();
                    }
                    _ => encode_bytes(field),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(encode_bytes),
        _ => {}
    }
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    let byte = |value: &Value| value.as_u64().and_then(|number| u8::try_from(number).ok());
    value.as_array()?.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tunnelbench_traffic::job::Content;

    use super::*;

    #[test]
    fn bytes_are_text() {
        let content = Content::Pattern {
            data: b"abc".to_vec().into(),
        };
        assert_eq!(
            plain(&content),
            json!({ "kind": "pattern", "data": "YWJj" })
        );
        let series = json!({ "step": 1, "bytes": [1, 2], "encoded": [1, 256] });
        assert_eq!(plain(&series), series);
    }
}
