//! Addresses that belong to the public internet: the special-purpose registries of IANA (RFC 6890 and later
//! entries, as of November 2026), as code.
//!
//! Addresses within 2001::/23 are refused although the registries call some of them globally reachable:
//! anycast addresses of protocols, multicast relays, name servers that answer nothing, and identifiers that
//! are not routed (ORCHID, DRIP). No site is there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns true if an address, and every address hidden within it, is global unicast.
pub(super) fn is_public(ip: IpAddr) -> bool {
    forms(ip).all(|ip| match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    })
}

/// Returns an address in its canonical form and every address hidden within it, where packets may come out
/// behind a translator or a tunnel.
pub(super) fn forms(ip: IpAddr) -> impl Iterator<Item = IpAddr> {
    let ip = ip.to_canonical();
    let hidden = match ip {
        IpAddr::V4(_) => [None, None],
        IpAddr::V6(ip) => hidden_in(ip),
    };
    let hidden = hidden.into_iter().flatten().map(IpAddr::from);
    std::iter::once(ip).chain(hidden)
}

fn hidden_in(ip: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match ip.segments() {
        // NAT64.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => [v4(high, low), None],
        // Teredo: the server, and the client with its bits inverted.
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            [v4(server_high, server_low), v4(!high, !low)]
        }
        // 6to4, with ISATAP behind it.
        [0x2002, site_high, site_low, _, 0 | 0x200, 0x5efe, high, low] => {
            [v4(site_high, site_low), v4(high, low)]
        }
        // 6to4.
        [0x2002, high, low, ..] => [v4(high, low), None],
        // ISATAP.
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => [v4(high, low), None],
        _ => [None, None],
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
            // Protocol assignments, the two anycast addresses in them too; 6to4 relays.
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

/// Returns true if the address is in global unicast, which is 2000::/3 and NAT64. Loopback, `::/96`, the
/// local NAT64 of 64:ff9b:1::/48, discard and dummy addresses in 100::/63, SRv6 in 5f00::/16, unique local,
/// link-local, site-local and multicast addresses are outside of it.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => true,
        // Teredo.
        [0x2001, 0, ..] => true,
        // Protocol assignments; documentation, twice.
        [0x2001, ..=0x1ff | 0xdb8, ..] | [0x3fff, ..=0xfff, ..] => false,
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}
