//! A whole promotion in a repository of many files: time, requests, bytes and memory of the client alone.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use forge::git::{Draft, Pushed};

use crate::scene::{AUTHOR, Scene, at};

/// Names the repository to the process that is measured.
const URL: &str = "ALLCLEAR_TEST_REPOSITORY";

/// Peak memory of the client's process without and with the files it does not want, in MiB: measured 13 and 29.
const MEMORY_MIB_MAX: [u64; 2] = [32, 64];

/// Deflating makes nothing of it.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()
    };
    (0..bytes / 4).flat_map(next).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promotion_among_2002_files_and_8_mib_of_others_is_small_and_quick() {
    let scene = Scene::empty().await;
    let yaml: Vec<(String, String)> = (0..2_002)
        .map(|number| {
            (format!("apps/a{}/s{number}/values.yaml", number % 40), format!("service: s{number}\ntag: 1.0\n"))
        })
        .collect();
    let big = noise(8 * 1024 * 1024);
    let mut files: Vec<(&str, &[u8])> = yaml.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    files.push(("big.bin", &big));
    scene.host.commit(crate::scene::REPOSITORY, "main", &files).expect("commit");
    scene.git(&["repack", "-adq"]);
    for (filter, memory_mib_max) in ["true", "false"].into_iter().zip(MEMORY_MIB_MAX) {
        scene.git(&["config", "uploadpack.allowFilter", filter]);
        let output = tokio::task::block_in_place(|| {
            let mut client = Command::new(std::env::current_exe().expect("this program"));
            client.args(["--exact", "git::whole::the_client", "--ignored", "--nocapture"]);
            client.env(URL, scene.url()).output().expect("it runs")
        });
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        let figures = said.lines().find(|line| line.contains(" MiB")).expect("figures");
        println!("promotion among 2,002 files and 8 MiB, filter {filter}: {figures}");
        let memory: u64 = figures.split_whitespace().next().and_then(|mib| mib.parse().ok()).expect("a number");
        assert!(memory <= memory_mib_max, "{figures}, aim {memory_mib_max} MiB");
        scene.git(&["fsck", "--strict"]);
        assert_eq!(scene.git(&["diff", "--numstat", "main", "promote"]), "1\t1\tapps/a7/s7/values.yaml");
        scene.git(&["branch", "-D", "promote"]);
    }
}

#[tokio::test]
#[ignore = "a part of the test above, in a process of its own"]
async fn the_client() {
    let Ok(url) = std::env::var(URL) else { return };
    let begin = Instant::now();
    let (remote, http) = at(&url);
    let refs = remote.refs(&["refs/heads/main", "refs/heads/promote"]).await.expect("refs");
    let base = refs.branch("main").expect("main");
    let mut objects = remote.fetch(&[base].into()).await.expect("fetched");
    let files = objects.files(base, Some("apps")).expect("files");
    assert_eq!(files.len(), 2_002);
    remote.load(&mut objects, base, &files.iter().map(|file| file.id).collect()).await.expect("loaded");
    let marked =
        files.iter().filter(|file| objects.content(file.id).is_some_and(|text| text.starts_with(b"service: s7\n")));
    let changes: BTreeMap<String, Bytes> =
        marked.map(|file| (file.path.clone(), Bytes::from("service: s7\ntag: 2.0\n"))).collect();
    let draft = Draft { base, parent: base, author: AUTHOR, at: 1_700_000_100, message: "Promote", signer: None };
    let built = objects.build(&draft, &changes).expect("files").expect("a change");
    let before = http.bytes_sent.load(Ordering::SeqCst);
    assert_eq!(remote.push("promote", refs.branch("promote"), Some(&built)).await, Ok(Pushed::Done));
    let pushed = http.bytes_sent.load(Ordering::SeqCst) - before;
    println!(
        "{} MiB peak, {:?}, {} requests, {pushed} bytes pushed",
        peak_mib(),
        begin.elapsed(),
        http.requests.load(Ordering::SeqCst)
    );
}

/// The most memory that this process had.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}
