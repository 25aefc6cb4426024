//! Which addresses belong to the public internet: the special-purpose registries of IANA
//! (RFC 6890 and what was registered after it), as code.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address, and every address hidden within it, is global unicast.
pub(super) fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !matches!(
        (a, b, c),
        // This network; private; loopback.
        (0 | 10 | 127, _, _)
            // Shared by carriers.
            | (100, 64..=127, _)
            // Link-local: where clouds keep their metadata.
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 168, _)
            // Protocol assignments; 6to4 relays.
            | (192, 0, 0)
            | (192, 88, 99)
            // Documentation.
            | (192, 0, 2)
            | (198, 51, 100)
            | (203, 0, 113)
            // Benchmarks.
            | (198, 18..=19, _)
            // Multicast, reserved, broadcast.
            | (224.., _, _)
    )
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match ip.segments() {
        // NAT64.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(v4(high, low)),
        // 6to4.
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        // Teredo: the server, and the client with its bits turned over.
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            is_public_v4(v4(server_high, server_low)) && is_public_v4(v4(!high, !low))
        }
        // Protocol assignments; documentation, twice.
        [0x2001, ..=0x1ff | 0xdb8, ..] | [0x3fff, ..=0xfff, ..] => false,
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}
