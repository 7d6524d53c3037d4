"""What a tunnel adds to packets, computed from its formats alone; nothing is measured here.

A VPN says with an `Encapsulation` how it wraps what it carries: layers, the outermost first. From that the
model (`tunnelbench.overhead.model`) knows every packet on the wire, field by field.
"""

from tunnelbench.overhead.encapsulation import Encapsulation as Encapsulation
from tunnelbench.overhead.encapsulation import Field as Field
from tunnelbench.overhead.encapsulation import Inner as Inner
from tunnelbench.overhead.encapsulation import Kind as Kind
from tunnelbench.overhead.encapsulation import Layer as Layer
from tunnelbench.overhead.encapsulation import Oversize as Oversize
from tunnelbench.overhead.encapsulation import Padding as Padding
