//! The ports of the listeners: whether they are free, and who has them if not.

use std::fs;
use std::net::SocketAddr;

use crate::app::listeners;
use crate::cli::doctor::Finding;
use crawler_process::task::blocking;

/// Process that has a port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    process: u32,
    /// Name of its program.
    name: String,
}

/// Checks that a port is free, or that another `crawler` has it.
pub(super) async fn check(name: &'static str, flag: &'static str, address: SocketAddr) -> Finding {
    let found = blocking(move || {
        let taken = listeners::check_port(address, flag).err();
        let holder = taken.as_ref().and_then(|_| holder(address.port()));
        (taken, holder)
    });
    match found.await {
        Ok((None, _)) => Finding::ok(name, format!("{address} is free")),
        Ok((Some(error), None)) => Finding::of_error(name, &error),
        Ok((Some(_), Some(holder))) => of_holder(name, flag, address, &holder),
        Err(error) => Finding::of_error(name, &error.into()),
    }
}

fn of_holder(
    name: &'static str,
    flag: &'static str,
    address: SocketAddr,
    holder: &Holder,
) -> Finding {
    let found = format!(
        "{address} is held by process {} ({})",
        holder.process, holder.name
    );
    match holder.name == "crawler" {
        true => Finding::ok(name, found),
        false => Finding::failed(
            name,
            found,
            format!("stop it, or choose another address with {flag}"),
        ),
    }
}

/// Returns the process that listens on a port, if the system tells: processes of other users are hidden.
fn holder(port: u16) -> Option<Holder> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let sockets: Vec<String> = tables
        .iter()
        .flatten()
        .flat_map(|table| listening(table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.into_iter().find_map(|entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let mut files = fs::read_dir(entry.path().join("fd")).ok()?.flatten();
        let is_holder = files.any(|file| {
            let target = fs::read_link(file.path()).unwrap_or_default();
            sockets
                .iter()
                .any(|socket| target.as_os_str() == socket.as_str())
        });
        let name = || fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        is_holder.then(|| Holder {
            process,
            name: name().trim().to_owned(),
        })
    })
}

/// Returns the inodes of the sockets that listen on a port, by a table of the kernel.
fn listening(table: &str, port: u16) -> Vec<String> {
    /// State of a socket that listens.
    const LISTEN: &str = "0A";
    let wanted = format!(":{port:04X}");
    let rows = table.lines().skip(1).filter_map(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let (&local, &state, &inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        (local.ends_with(&wanted) && state == LISTEN).then(|| inode.to_owned())
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::Verdict;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2383 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 0
   1: 0100007F:2383 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 12346 1 0
";

    #[test]
    fn sockets_that_listen_are_found_by_their_port() {
        assert_eq!(listening(TABLE, 9091), ["12345"]);
        assert_eq!(listening(TABLE, 9090), Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_port_of_another_program_is_told_with_its_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let taken = check("http port", "--http", address).await;
        assert_eq!(taken.result, Verdict::Failed);
        if cfg!(target_os = "linux") {
            let own = format!("process {} (", std::process::id());
            assert!(taken.found.contains(&own), "{taken:?}");
        }
        assert!(taken.found.contains(&address.to_string()), "{taken:?}");
    }

    #[test]
    fn a_port_of_a_crawler_is_well() {
        let holder = Holder {
            process: 7,
            name: "crawler".to_owned(),
        };
        let address = "127.0.0.1:9091".parse().unwrap();
        let found = of_holder("grpc port", "--grpc", address, &holder);
        assert_eq!(found.result, Verdict::Ok);
        let expected = "127.0.0.1:9091 is held by process 7 (crawler)";
        assert_eq!(found.found, expected);
    }
}
