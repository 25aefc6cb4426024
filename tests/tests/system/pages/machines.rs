//! Three machines of their own: networks behind a switch, with the folders of a machine where the page writes.

use std::fs;

use crawler_tests::skipped;

use super::shell::{Shell, Stage};

/// Makes three machines with the addresses 10.0.0.1 to 10.0.0.3, and folders of their own where the page has
/// them write. `None`, after saying so, if this machine allows none.
pub(super) fn open(stage: &Stage, switch: &mut Shell) -> Option<Vec<Shell>> {
    fs::create_dir_all(stage.path("shared/crawler")).expect("the home is empty");
    // Networks are named by files of /run.
    let is_made = switch
        .run("mount -t tmpfs none /run && ip link add switch type bridge && ip link set switch up");
    if is_made.code != 0 {
        let why = is_made.lines.join("; ");
        skipped(
            "three-machines",
            &format!("no switch can be had here: {why}"),
        );
        return None;
    }
    let machine = |n: usize| {
        switch.ok(&format!(
            "ip netns add m{n} && ip link add port{n} type veth peer name eth0 netns m{n} && \
             ip link set port{n} master switch up && ip -n m{n} link set lo up && \
             ip -n m{n} address add 10.0.0.{n}/24 dev eth0 && ip -n m{n} link set eth0 up"
        ));
        let mut machine = stage.open_in(switch, &format!("m{n}"));
        let folder = stage.path("work/crawler").display().to_string();
        let state = stage.path(&format!("state-{n}")).display().to_string();
        machine.ok(&format!("cd {folder} && export XDG_STATE_HOME={state}"));
        machine
            .ok("for folder in /mnt /srv /var/lib; do mount -t tmpfs none $folder || exit; done");
        let shared = stage.path("shared").display().to_string();
        // Machine 1 shares its folder; the other mounts stand for NFS.
        machine.ok(&match n {
            1 => format!("mount --bind {shared} /srv"),
            _ => format!("mkdir /mnt/crawler && mount --bind {shared}/crawler /mnt/crawler"),
        });
        machine
    };
    Some((1..=3).map(machine).collect())
}
