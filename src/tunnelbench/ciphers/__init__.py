"""How fast a suite's cipher and integrity check are on their own, without packets and tunnels.

What a tunnel reaches is at most what its cryptography allows. The kernel's is timed through AF_ALG sockets,
that of programs with OpenSSL; both on a gateway's node, so that they run where the tunnel's data plane runs.
"""
