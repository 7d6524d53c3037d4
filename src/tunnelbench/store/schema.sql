-- One campaign per file. Levels are columns under their vocabulary names, null where a factor doesn't apply;
-- times are UTC in ISO 8601.

CREATE TABLE campaign (
    id TEXT PRIMARY KEY,
    created TEXT NOT NULL,
    product_version TEXT NOT NULL,
    study_id TEXT NOT NULL,
    study_title TEXT NOT NULL,
    study_question TEXT NOT NULL,
    study_toml TEXT NOT NULL,
    seed INTEGER NOT NULL,
    plan TEXT NOT NULL CHECK (json_valid(plan)),
    versions TEXT NOT NULL CHECK (json_valid(versions)),
    state TEXT NOT NULL CHECK (state IN ('running', 'interrupted', 'finished')),
    why TEXT
) STRICT;

CREATE TABLE cell (
    key TEXT PRIMARY KEY,
    vpn TEXT NOT NULL,
    suite TEXT NOT NULL,
    options TEXT NOT NULL,
    outer_ip TEXT NOT NULL CHECK (outer_ip IN ('ipv4', 'ipv6')),
    clients INTEGER NOT NULL,
    gateway_os TEXT NOT NULL,
    host_os TEXT NOT NULL,
    mtu INTEGER NOT NULL,
    transport TEXT NOT NULL CHECK (transport IN ('tcp', 'udp', 'icmp')),
    ip TEXT NOT NULL CHECK (ip IN ('ipv4', 'ipv6')),
    profile TEXT NOT NULL,
    payload_bytes INTEGER,
    rate TEXT,
    direction TEXT CHECK (direction IN ('forward', 'reverse', 'both')),
    streams INTEGER,
    content TEXT,
    sending TEXT CHECK (sending IN ('batched', 'per-packet', 'segmented')),
    congestion_control TEXT,
    background TEXT NOT NULL CHECK (background IN ('none', 'tcp', 'tcp-reverse', 'tcp-both')),
    load TEXT NOT NULL,
    skipped TEXT
) STRICT;

-- Payload that a study reads from files, so that a campaign can go on without them.
CREATE TABLE content (
    name TEXT PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;

-- What the load generators did with nothing between them.
CREATE TABLE calibration (
    id INTEGER PRIMARY KEY,
    host_os TEXT NOT NULL,
    mtu INTEGER NOT NULL,
    transport TEXT NOT NULL CHECK (transport IN ('tcp', 'udp', 'icmp')),
    ip TEXT NOT NULL CHECK (ip IN ('ipv4', 'ipv6')),
    profile TEXT NOT NULL,
    payload_bytes INTEGER,
    rate TEXT,
    direction TEXT CHECK (direction IN ('forward', 'reverse', 'both')),
    streams INTEGER,
    content TEXT,
    sending TEXT CHECK (sending IN ('batched', 'per-packet', 'segmented')),
    congestion_control TEXT,
    background TEXT NOT NULL CHECK (background IN ('none', 'tcp', 'tcp-reverse', 'tcp-both')),
    load TEXT NOT NULL,
    metrics TEXT NOT NULL CHECK (json_valid(metrics)),
    reason TEXT
) STRICT;

-- What the cryptography of a tunnel does alone, on a node like its gateways.
CREATE TABLE cryptography (
    id INTEGER PRIMARY KEY,
    vpn TEXT NOT NULL,
    suite TEXT NOT NULL,
    options TEXT NOT NULL,
    outer_ip TEXT NOT NULL CHECK (outer_ip IN ('ipv4', 'ipv6')),
    clients INTEGER NOT NULL,
    gateway_os TEXT NOT NULL,
    host_os TEXT NOT NULL,
    mtu INTEGER NOT NULL,
    runtime TEXT NOT NULL,
    encryption TEXT NOT NULL,
    integrity TEXT NOT NULL,
    implementation TEXT NOT NULL,
    ns_per_packet REAL,
    ns_per_byte REAL,
    reason TEXT,
    CHECK ((ns_per_packet IS NULL) = (ns_per_byte IS NULL)),
    CHECK ((ns_per_byte IS NULL) = (reason IS NOT NULL))
) STRICT;

CREATE TABLE instance (
    id INTEGER PRIMARY KEY,
    campaign_round INTEGER NOT NULL,
    position INTEGER NOT NULL,
    vpn TEXT NOT NULL,
    suite TEXT NOT NULL,
    options TEXT NOT NULL,
    outer_ip TEXT NOT NULL CHECK (outer_ip IN ('ipv4', 'ipv6')),
    clients INTEGER NOT NULL,
    gateway_os TEXT NOT NULL,
    host_os TEXT NOT NULL,
    mtu INTEGER NOT NULL,
    runtime TEXT,
    runtime_reason TEXT,
    status TEXT NOT NULL
        CHECK (status IN ('starting', 'proven', 'refused', 'failed', 'skipped', 'interrupted')),
    reason TEXT,
    setup_ms REAL,
    handshake_ms REAL,
    started TEXT NOT NULL,
    ended TEXT,
    evidence TEXT CHECK (evidence IS NULL OR json_valid(evidence)),
    log_tail TEXT
) STRICT;

CREATE TABLE trial (
    id INTEGER PRIMARY KEY,
    instance INTEGER NOT NULL REFERENCES instance (id),
    position INTEGER NOT NULL,
    transport TEXT NOT NULL CHECK (transport IN ('tcp', 'udp', 'icmp')),
    ip TEXT NOT NULL CHECK (ip IN ('ipv4', 'ipv6')),
    profile TEXT NOT NULL,
    payload_bytes INTEGER,
    rate TEXT,
    direction TEXT CHECK (direction IN ('forward', 'reverse', 'both')),
    streams INTEGER,
    content TEXT,
    sending TEXT CHECK (sending IN ('batched', 'per-packet', 'segmented')),
    congestion_control TEXT,
    background TEXT NOT NULL CHECK (background IN ('none', 'tcp', 'tcp-reverse', 'tcp-both')),
    load TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('ok', 'void')),
    reason TEXT,
    started TEXT NOT NULL,
    seconds REAL NOT NULL
) STRICT;

CREATE INDEX trial_instance ON trial (instance);

CREATE TABLE metric (
    trial INTEGER NOT NULL REFERENCES trial (id),
    name TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (trial, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE node_cost (
    trial INTEGER NOT NULL REFERENCES trial (id),
    node TEXT NOT NULL,
    field TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (trial, node, field)
) STRICT, WITHOUT ROWID;

CREATE TABLE series (
    trial INTEGER NOT NULL REFERENCES trial (id),
    name TEXT NOT NULL,
    samples BLOB NOT NULL,
    PRIMARY KEY (trial, name)
) STRICT;

CREATE TABLE histogram (
    trial INTEGER NOT NULL REFERENCES trial (id),
    name TEXT NOT NULL,
    counts BLOB NOT NULL,
    PRIMARY KEY (trial, name)
) STRICT;

-- Cells that are not measured any more from a round on, because enough is known of them.
CREATE TABLE settled (
    campaign_round INTEGER NOT NULL,
    instance TEXT NOT NULL,
    point TEXT NOT NULL,
    name TEXT NOT NULL,
    instances INTEGER NOT NULL,
    half_width REAL NOT NULL,
    PRIMARY KEY (instance, point)
) STRICT;

-- What forced new keys cost traffic, beside the same traffic without them.
CREATE TABLE rekey (
    instance INTEGER PRIMARY KEY REFERENCES instance (id),
    seconds REAL NOT NULL,
    loss REAL NOT NULL,
    calm_loss REAL NOT NULL,
    gap_ms REAL NOT NULL,
    calm_gap_ms REAL NOT NULL,
    latency_ms REAL NOT NULL,
    calm_latency_ms REAL NOT NULL
) STRICT;

-- What pilots found to be cut off at the start of trials.
CREATE TABLE warm_up (
    instance TEXT NOT NULL,
    point TEXT NOT NULL,
    name TEXT NOT NULL,
    seconds REAL NOT NULL,
    series TEXT,
    is_settled INTEGER NOT NULL,
    PRIMARY KEY (instance, point)
) STRICT;

-- What the machine did besides the campaign: before it, during each trial, after it.
CREATE TABLE machine_state (
    id INTEGER PRIMARY KEY,
    trial INTEGER UNIQUE REFERENCES trial (id),
    moment TEXT NOT NULL CHECK (moment IN ('before', 'during', 'after')),
    seconds REAL NOT NULL,
    processors INTEGER NOT NULL,
    others REAL NOT NULL,
    stolen REAL NOT NULL,
    frequency_mhz REAL,
    temperature_c REAL,
    clock_step_ms REAL NOT NULL,
    clock_source TEXT,
    CHECK ((trial IS NOT NULL) = (moment = 'during'))
) STRICT;

-- Files of the directory campaign.packets beside this one.
CREATE TABLE packet_log (
    trial INTEGER NOT NULL REFERENCES trial (id),
    written_by TEXT NOT NULL CHECK (written_by IN ('sender', 'receiver', 'sender-reverse', 'receiver-reverse')),
    file TEXT NOT NULL UNIQUE,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (trial, written_by)
) STRICT, WITHOUT ROWID;

CREATE TABLE warning (
    id INTEGER PRIMARY KEY,
    instance INTEGER NOT NULL REFERENCES instance (id),
    trial INTEGER REFERENCES trial (id),
    kind TEXT NOT NULL,
    message TEXT NOT NULL,
    advice TEXT NOT NULL
) STRICT;

-- No proof, no number.
CREATE TRIGGER trial_needs_proof BEFORE INSERT ON trial
WHEN (SELECT status FROM instance WHERE id = new.instance) IS NOT 'proven'
BEGIN
    SELECT RAISE(ABORT, 'a trial needs an instance that is proven');
END;

-- Interrupted instances whose treatment was brought up and proven again later in the same round:
-- their trials are kept in the file but no longer counted.
CREATE VIEW superseded AS
SELECT interrupted.id AS instance
FROM instance AS interrupted
WHERE interrupted.status = 'interrupted' AND EXISTS (
    SELECT 1 FROM instance AS again
    WHERE again.id > interrupted.id
        AND again.status = 'proven'
        AND again.campaign_round = interrupted.campaign_round
        AND again.vpn = interrupted.vpn
        AND again.suite = interrupted.suite
        AND again.options = interrupted.options
        AND again.outer_ip = interrupted.outer_ip
        AND again.clients = interrupted.clients
        AND again.gateway_os = interrupted.gateway_os
        AND again.host_os = interrupted.host_os
        AND again.mtu = interrupted.mtu
        AND again.runtime IS interrupted.runtime
);
