//! moto, another server with the protocol of S3, as a second opinion.

use std::net::TcpListener;
use std::process::Command;

use crawler_tests::guests::guest;
use crawler_tests::process::Process;
use crawler_tests::python::python;

use super::*;

/// Package of PyPI with the server.
const MOTO: &str = "moto[server]==5.2.1";
/// Program that makes the bucket, or prints the objects below a prefix.
const CALLS: &str = "
import boto3, sys
s3 = boto3.client('s3', endpoint_url=sys.argv[1], region_name='us-east-1',
                  aws_access_key_id='id', aws_secret_access_key='key')
if sys.argv[2] == 'make':
    s3.create_bucket(Bucket='crawler')
else:
    for page in s3.get_paginator('list_objects_v2').paginate(Bucket='crawler', Prefix=sys.argv[3]):
        for found in page.get('Contents', []):
            sys.stdout.write(s3.get_object(Bucket='crawler', Key=found['Key'])['Body'].read().decode())
";

#[test]
fn a_killed_crawl_goes_on_in_a_bucket_of_moto() {
    let _turn = one_at_a_time();
    let home = Home::new();
    let Some(python) = python(home.path(), "moto", &[MOTO]) else {
        return;
    };
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        listener.local_addr().expect("it is bound").port()
    };
    let mut server = Command::new(python.with_file_name("moto_server"));
    server.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    let _server = Process::start(&mut server);
    let endpoint = format!("http://127.0.0.1:{port}");
    let call = |arguments: &[&str]| {
        let mut command = Command::new(&python);
        command.args(["-c", CALLS, &endpoint]).args(arguments);
        Process::start(&mut command).wait(PATIENCE)
    };
    until("an answer of moto", PATIENCE, || {
        (call(&["make"]).code == Some(0)).then_some(())
    });
    let web = site();
    let config = format!(
        "[[plugin]]\npath = {:?}\n\n[[resource]]\nname = \"puppet\"\nplugin = \"puppet\"\nparams = {{ start = \"{}\" }}\ndelay = \"5ms\"\nmax-depth = 1000\n\n[data]\nendpoint = \"{endpoint}\"\naccess-key = \"id\"\nsecret-key-file = \"key\"\n",
        guest("puppet"),
        web.url("/0"),
    );
    home.write("crawler.toml", &config);
    home.write("key", "key\n");
    let crawl = || {
        home.start([
            "worker",
            "--cluster=false",
            "--allow-networks=127.0.0.0/8",
            "--data=s3://crawler/root",
        ])
    };
    let mut killed = crawl();
    web.wait_for("a third of the pages", PATIENCE, |log| {
        log.len() > N_PAGES / 3
    });
    killed.kill();
    let ended = crawl().wait(PATIENCE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = call(&["read", "root/items/"]).stdout;
    let urls = lines.lines().map(|line| {
        let record: Value = serde_json::from_str(line).expect("a line is JSON");
        text(&record["url"]).to_owned()
    });
    let urls: Vec<String> = urls.collect();
    let all: BTreeSet<String> = urls.iter().cloned().collect();
    assert_eq!(
        (all, urls.len()),
        (all_pages(&web), N_PAGES),
        "each item is there once"
    );
}
