//! Tables of addresses that pass the address policy and of those that do not.

use super::*;

fn address_policy(networks: &[&str]) -> AddressPolicy {
    AddressPolicy::new(networks.iter().map(|n| n.parse().unwrap()).collect())
}

#[track_caller]
fn check(address_policy: &AddressPolicy, url: &str, expected: &str) {
    let url: Url = url.parse().unwrap();
    let found = address_policy
        .check(&url)
        .map_or_else(|e| e.reason(), |()| "ok");
    assert_eq!(found, expected, "{url}");
}

/// Spellings of addresses that must not be reached.
const HIDDEN: &[&str] = &[
    // 127.0.0.1
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0x7F.1",
    "017700000001",
    "0177.0.0.01",
    "127.0.0.1%2e",
    "%31%32%37.0.0.1",
    "１２７.０.０.１",
    "127。0。0。1",
    "127.255.255.254",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[64:ff9b:1:ffff:ffff:ffff:7f00:1]",
    "[2002:7f00:1::]",
    "[2002:7f00:0001:0:1::1]",
    "[2001:0:7f00:1::]",
    "[2001:0:808:808:0:0:80ff:fffe]",
    "[2a00:1450:1:2:0:5efe:127.0.0.1]",
    "[2a00:1450:1:2:200:5efe:7f00:1]",
    "[2002:808:808:1:0:5efe:127.0.0.1]",
    "[2002:7f00:1:1:0:5efe:8.8.8.8]",
    "①②⑦.0.0.①",
    "127\u{ff0e}0\u{ff61}0.1",
    "0.0.0.0",
    "0",
    "[::]",
    // 169.254.169.254
    "169.254.169.254",
    "169.254.169.254.",
    "169.254.43518",
    "169.16689662",
    "2852039166",
    "0xa9fea9fe",
    "0xA9.0xFE.0xA9.0xFE",
    "0251.0376.0251.0376",
    "025177524776",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "[::169.254.169.254]",
    "[fe80::5efe:169.254.169.254]",
    "[2a00:1450:1:2:0:5efe:a9fe:a9fe]",
    "0251.254.0xa9fe",
    "１６９．２５４．１６９．２５４",
    "①⑥⑨.②⑤④.①⑥⑨.②⑤④",
    "%31%36%39%2e254.169.254",
    "169.254.255.255",
    // fd00:ec2::254
    "[fd00:ec2::254]",
    "[fd00:0ec2:0:0:0:0:0:254]",
    "[FD00:EC2::0.0.2.84]",
    "[fd00:ec2:0:0::0:254]",
    "[FD00:0EC2::0254]",
    // Private, shared, local, reserved.
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "192.0.0.8",
    "192.0.0.9",
    "192.0.0.10",
    "192.88.99.2",
    "192.0.2.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[fe80::1]",
    "[fc00::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[2001:1::1]",
    "[2001:2::1]",
    "[2001:3::1]",
    "[2001:4:112::1]",
    "[2001:10::1]",
    "[2001:20::1]",
    "[2001:30::1]",
    "[2001:1ff:ffff::1]",
    "[3fff:1::1]",
    "[5f00::1]",
    "[5f00:ffff::1]",
    "[100::1]",
    "[100:0:0:1::1]",
    "[::1:0:0]",
    "[4000::1]",
];

#[test]
fn no_spelling_of_an_address_that_is_not_public_passes() {
    let address_policy = AddressPolicy::default();
    for host in HIDDEN {
        check(
            &address_policy,
            &format!("http://{host}/"),
            "address-denied",
        );
        check(
            &address_policy,
            &format!("https://{host}:8443/x"),
            "address-denied",
        );
    }
}

#[test]
fn what_is_not_one_host_is_no_url() {
    for host in [
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[fd00:ec2::254%25lo]",
        "[fd00:ec2::254].",
        "[%66d00:ec2::254]",
        "[fd00:ec2::２５４]",
        "١٢٧.٠.٠.١",
        "[127.0.0.1]",
        "[::ffff:0177.0.0.1]",
        "127.0.0.256",
        "127.0.0.0.1",
        "0x1ffffffff",
        "127.0.0.1%00",
        "127.0.0.1%2f.example.org",
        "127.0.0.1%5c.example.org",
        "127.0.0.1%40example.org",
        "127.0.0.1 .example.org",
        "-127.0.0.1:-80",
        "127.0.0.1:65536",
        "",
    ] {
        let url = format!("http://{host}/");
        assert!(Url::parse(&url).is_err(), "{url}");
    }
}

#[test]
fn the_host_that_is_judged_is_the_one_that_is_gone_to() {
    let address_policy = AddressPolicy::default();
    for (url, host, expected) in [
        ("http:\\\\127.0.0.1\\", "127.0.0.1", "address-denied"),
        ("http:/\\127.0.0.1", "127.0.0.1", "address-denied"),
        ("http:127.0.0.1", "127.0.0.1", "address-denied"),
        (" ht\ttp://127.0\r\n.0.1/", "127.0.0.1", "address-denied"),
        (
            "http://127.0.0.1\\@example.org/",
            "127.0.0.1",
            "address-denied",
        ),
        (
            "http://127.0.0.1#@example.org/",
            "127.0.0.1",
            "address-denied",
        ),
        (
            "http://127.0.0.1?@example.org/",
            "127.0.0.1",
            "address-denied",
        ),
        ("http://example.org\\@127.0.0.1/", "example.org", "ok"),
        ("http://example.org#@127.0.0.1/", "example.org", "ok"),
        ("http://example.org@127.0.0.1/", "127.0.0.1", "bad-request"),
        (
            "http://example.org:80@127.0.0.1/",
            "127.0.0.1",
            "bad-request",
        ),
        ("http://a@b@127.0.0.1/", "127.0.0.1", "bad-request"),
        (
            "http://a.test@169.254.169.254/",
            "169.254.169.254",
            "bad-request",
        ),
        (
            "http:\\\\169.254.169.254\\latest",
            "169.254.169.254",
            "address-denied",
        ),
        (
            "http:\\\\[fd00:ec2::254]\\latest",
            "[fd00:ec2::254]",
            "address-denied",
        ),
        (
            "http://%40@[fd00:ec2::254]/",
            "[fd00:ec2::254]",
            "bad-request",
        ),
    ] {
        assert_eq!(Url::parse(url).unwrap().host_str(), Some(host), "{url}");
        check(&address_policy, url, expected);
    }
}

#[test]
fn public_addresses_and_names_pass() {
    for host in [
        "example.org",
        "8.8.8.8",
        "172.15.0.1",
        "172.32.0.1",
        "100.63.0.1",
        "100.128.0.1",
        "192.1.0.1",
        "198.20.0.1",
        "223.255.255.255",
        "192.31.196.1",
        "192.52.193.1",
        "192.175.48.1",
        "[2606:4700::1111]",
        "[2620:4f:8000::1]",
        "[2001:200::1]",
        "[3fff:1000::1]",
        "[2a00:1450:1:2:0:5efe:8.8.8.8]",
        "[2001:4860:4860::8888]",
        "[::ffff:8.8.8.8]",
        "[64:ff9b::8.8.8.8]",
        "[2002:808:808::1]",
    ] {
        check(
            &AddressPolicy::default(),
            &format!("http://{host}:81/"),
            "ok",
        );
    }
}

#[test]
fn only_http_without_credentials_is_fetched() {
    let address_policy = AddressPolicy::default();
    check(&address_policy, "ftp://example.org/", "scheme");
    check(&address_policy, "file:///etc/passwd", "scheme");
    check(&address_policy, "data:text/html,x", "scheme");
    check(&address_policy, "javascript:alert(1)", "scheme");
    check(&address_policy, "gopher://example.org:70/1x", "scheme");
    check(&address_policy, "view-source:http://example.org/", "scheme");
    check(&address_policy, "ws://example.org/", "scheme");
    check(&address_policy, "blob:http://example.org/1", "scheme");
    check(&address_policy, "http://user@example.org/", "bad-request");
    check(
        &address_policy,
        "http://:secret@example.org/",
        "bad-request",
    );
    let error = address_policy.check(&"http://u:secret@example.org/".parse().unwrap());
    assert!(!error.unwrap_err().to_string().contains("secret"));
}

#[test]
fn the_operator_opens_networks_and_nothing_beside_them() {
    let address_policy = address_policy(&["127.0.0.0/8", "fd00::/8"]);
    check(&address_policy, "http://127.0.0.1:8000/", "ok");
    check(&address_policy, "http://[::ffff:127.0.0.1]/", "ok");
    check(&address_policy, "http://[fd00:ec2::254]/", "ok");
    check(&address_policy, "http://[::1]/", "address-denied");
    check(&address_policy, "http://0.0.0.0/", "address-denied");
    check(&address_policy, "http://169.254.169.254/", "address-denied");
    assert!(address_policy.is_inside("::ffff:127.9.9.9".parse().unwrap()));
    assert!(!address_policy.is_inside("8.8.8.8".parse().unwrap()));
}

#[test]
fn own_nodes_are_refused_even_inside_allowed_networks() {
    let address_policy = address_policy(&["0.0.0.0/0", "::/0"]);
    check(&address_policy, "http://127.0.0.1:9091/", "ok");
    address_policy.set_own_nodes(
        [
            "127.0.0.1:9091",
            "[::ffff:10.0.0.5]:2379",
            "Master-1.test:80",
            "ETCD.test.:2379",
            "0xA000006:2380",
            "8.8.4.4:9091",
        ]
        .map(str::to_owned),
    );
    check(&address_policy, "http://127.0.0.1:9091/", "own-node");
    check(&address_policy, "http://2130706433:9091/", "own-node");
    check(&address_policy, "http://127.7.7.7:9091/", "own-node");
    check(&address_policy, "http://[::1]:9091/", "own-node");
    check(&address_policy, "http://0.0.0.0:9091/", "own-node");
    check(&address_policy, "http://10.0.0.5:2379/", "own-node");
    check(&address_policy, "http://[::ffff:a00:5]:2379/", "own-node");
    check(&address_policy, "http://master-1.TEST./", "own-node");
    check(&address_policy, "http://MASTER-1.test:80/", "own-node");
    check(&address_policy, "http://etcd.test:2379/", "own-node");
    check(&address_policy, "http://%65tcd.test.:2379/", "own-node");
    check(&address_policy, "http://10.0.0.6:2380/", "own-node");
    check(&address_policy, "http://8.8.4.4:9091/", "own-node");
    // Addresses in the forms of translators and tunnels.
    check(
        &address_policy,
        "http://[64:ff9b::8.8.4.4]:9091/",
        "own-node",
    );
    check(
        &address_policy,
        "http://[2002:808:404::1]:9091/",
        "own-node",
    );
    check(
        &address_policy,
        "http://[2a00:1:2:3:0:5efe:8.8.4.4]:9091/",
        "own-node",
    );
    check(&address_policy, "http://8.8.4.4:9092/", "ok");
    check(&address_policy, "http://127.0.0.1:9092/", "ok");
    check(&address_policy, "https://master-1.test/", "ok");
    let ip = "10.0.0.5".parse().unwrap();
    assert_eq!(address_policy.check_address(ip, None), Err(Denial::OwnNode));
    assert_eq!(address_policy.check_address(ip, Some(80)), Ok(()));
}

#[test]
fn a_listener_on_all_interfaces_is_refused_at_each_of_them() {
    let address_policy = address_policy(&["0.0.0.0/0", "::/0"]);
    address_policy.set_own_nodes(["0.0.0.0:9091".to_owned(), "[::]:8081".to_owned()]);
    let addresses = ["127.0.0.1", "127.3.2.1", "0.0.0.0", "[::1]"];
    for host in addresses
        .map(str::to_owned)
        .into_iter()
        .chain(of_this_machine())
    {
        check(&address_policy, &format!("http://{host}:9091/"), "own-node");
        check(&address_policy, &format!("http://{host}:8081/"), "own-node");
        check(&address_policy, &format!("http://{host}:9092/"), "ok");
    }
    check(&address_policy, "http://192.0.2.1:9091/", "ok");
}

/// Returns the address that this machine would send from, if it is in a network at all; nothing is sent.
fn of_this_machine() -> Option<String> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip().to_string())
}
