//! What git servers answer: refs in both versions of the protocol, packs, deltas, folders, commits, reports on a push.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use forge::git::{Bounds, Built, Draft, Node, Objects, Oid, Pushed, Remote, Snapshot};
use forge::{Authorities, Http, HttpError};
use http::{Method, Request, Response};
use miniz_oxide::deflate::compress_to_vec_zlib;
use sha1_smol::Sha1;

use crate::{Target, api, target};

pub const TARGETS: &[Target] = &[
    target("git_refs_v0", refs_v0),
    target("git_refs_v2", refs_v2),
    target("git_packets", packets),
    target("git_pack", pack),
    target("git_delta", delta),
    target("git_commit", commit),
    target("git_tree", tree),
    target("git_push_report", push_report),
];

/// Small enough that a bomb is found by the bound and not by the machine.
const BOUNDS: Bounds = Bounds {
    refs_bytes: 1 << 20,
    pack_bytes: 1 << 20,
    unpacked_bytes: 1 << 20,
    object_bytes: 1 << 18,
    objects: 1_000,
    entries: 1_000,
};

/// A server that answers by what it is asked.
struct Server<F>(F);

#[async_trait]
impl<F: Fn(&Request<Bytes>) -> Bytes + Send + Sync> Http for Server<F> {
    async fn send(
        &self,
        request: Request<Bytes>,
        _: Option<&Authorities>,
        _: usize,
    ) -> Result<Response<Bytes>, HttpError> {
        let uri = request.uri().to_string();
        let service = if uri.contains("receive-pack") { "receive" } else { "upload" };
        let what = if request.method() == Method::GET { "advertisement" } else { "result" };
        let kind = format!("application/x-git-{service}-pack-{what}");
        Ok(Response::builder().header("content-type", kind).body((self.0)(&request)).unwrap())
    }
}

fn remote(answer: impl Fn(&Request<Bytes>) -> Bytes + Send + Sync + 'static) -> Remote {
    let http: Arc<dyn Http> = Arc::new(Server(answer));
    Remote::new(http, "https://git.example.com/shop/web.git", None, None).unwrap().bounded(BOUNDS)
}

/// One that answers everything so and is known to speak v2.
fn answering(answer: Bytes) -> Remote {
    remote(move |_| answer.clone()).speaking_v2()
}

fn line(text: &[u8]) -> Vec<u8> {
    [format!("{:04x}", text.len() + 4).as_bytes(), text].concat()
}

/// The answer to a fetch, with this pack in it.
fn fetched(pack: &[u8]) -> Bytes {
    let mut answer = line(b"packfile\n");
    for part in pack.chunks(60_000) {
        answer.extend(line(&[b"\x01", part].concat()));
    }
    answer.extend(b"0000");
    answer.into()
}

fn id(kind: &str, data: &[u8]) -> Oid {
    let mut sum = Sha1::new();
    sum.update(format!("{kind} {}\0", data.len()).as_bytes());
    sum.update(data);
    sum.digest().to_string().parse().unwrap()
}

/// A pack of entries that are written already, whole.
fn packed(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    entries.iter().for_each(|entry| pack.extend(entry));
    let sum = Sha1::from(&pack).digest().bytes();
    pack.extend(sum);
    pack
}

/// An entry of a pack: 1 is a commit, 2 a folder, 3 a file, 7 a change to an object that `base` names.
fn entry(code: u8, base: &[u8], data: &[u8]) -> Vec<u8> {
    let (mut size, mut head) = (data.len(), Vec::new());
    let mut byte = code << 4 | u8::try_from(size & 0x0f).unwrap();
    size >>= 4;
    while size > 0 {
        head.push(byte | 0x80);
        byte = u8::try_from(size & 0x7f).unwrap();
        size >>= 7;
    }
    head.push(byte);
    [head, base.to_vec(), compress_to_vec_zlib(data, 1)].concat()
}

/// Reads the refs twice; all that is found was asked for.
fn refs(read: impl Fn() -> Remote, bytes: usize) -> bool {
    const PREFIXES: [&str; 2] = ["HEAD", "refs/heads/"];
    let listed = || api::run(async { read().refs(&PREFIXES).await });
    match (listed(), listed()) {
        (Ok(refs), Ok(again)) => {
            assert_eq!(refs, again);
            let mut count = 0;
            for (name, found) in refs.iter() {
                assert!(PREFIXES.iter().any(|prefix| name.starts_with(prefix)), "{name:?} was not asked for");
                assert_eq!(found.id.to_string().parse(), Ok(found.id));
                count += 1;
            }
            assert!(count * 40 <= bytes, "{count} refs from {bytes} bytes");
            count > 0
        }
        (Err(one), Err(other)) => {
            assert_eq!(one.to_string(), other.to_string());
            assert!(one.to_string().len() <= 8 * 1_024, "{} bytes", one.to_string().len());
            false
        }
        (Ok(_), Err(error)) | (Err(error), Ok(_)) => panic!("the same refs are read and are not: {error}"),
    }
}

fn refs_v0(bytes: &[u8]) -> bool {
    let answer = Bytes::copy_from_slice(bytes);
    refs(
        || {
            let answer = answer.clone();
            remote(move |request| if request.method() == Method::GET { answer.clone() } else { Bytes::new() })
        },
        bytes.len(),
    )
}

fn refs_v2(bytes: &[u8]) -> bool {
    let answer = Bytes::copy_from_slice(bytes);
    refs(|| answering(answer.clone()), bytes.len())
}

fn fetch(answer: &Bytes, wanted: Oid) -> Result<Objects, String> {
    let fetched = api::run(async { answering(answer.clone()).fetch(&BTreeSet::from([wanted])).await });
    fetched.map_err(|error| error.to_string())
}

fn snapshot(answer: &Bytes, wanted: Oid) -> Result<Snapshot, String> {
    let scratch = tempfile::tempfile().unwrap();
    let taken = api::run(async { answering(answer.clone()).snapshot(wanted, "refs/heads/main", scratch).await });
    taken.map_err(|error| error.to_string())
}

/// A whole answer to a fetch, of which one commit was asked for.
fn packets(bytes: &[u8]) -> bool {
    let wanted = id("commit", COMMIT);
    let answer = Bytes::copy_from_slice(bytes);
    match fetch(&answer, wanted) {
        Ok(objects) => {
            assert!(objects.commit(wanted).is_ok(), "what was asked for is there");
            true
        }
        Err(words) => {
            assert!(words.len() <= 16 * 1_024, "{} bytes", words.len());
            false
        }
    }
}

/// The commit that corpora have: of a folder with nothing in it.
const COMMIT: &[u8] = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor Ann <ann@example.com> 1795309611 +0000\n\
    committer Ann <ann@example.com> 1795309611 +0000\n\nA commit\n";

/// A pack without its checksum, which is made here: a wrong one would end each try at once.
fn pack(bytes: &[u8]) -> bool {
    let sum = Sha1::from(bytes).digest().bytes();
    let answer = fetched(&[bytes, &sum].concat());
    let wanted = id("commit", COMMIT);
    let (in_memory, on_disk) = (fetch(&answer, wanted), snapshot(&answer, wanted));
    // On the disk more is judged, and what is not judged whole is not there.
    assert!(on_disk.is_err() || in_memory.is_ok(), "{:?}", in_memory.err());
    in_memory.is_ok()
}

/// Changes to a base of 256 different bytes, read as git's own document says they are.
/// <https://git-scm.com/docs/pack-format#_deltified_representation>
fn delta(bytes: &[u8]) -> bool {
    let base: Vec<u8> = (0..=255).collect();
    let base_id = id("blob", &base);
    let name: Vec<u8> = base_id.to_string().as_bytes().chunks(2).map(hex).collect();
    let answer = fetched(&packed(&[entry(3, b"", &base), entry(7, &name, bytes)]));
    let read = fetch(&answer, base_id);
    match applied(&base, bytes) {
        Some(data) if data.len() <= BOUNDS.object_bytes => {
            let objects = read.expect("what the document allows");
            assert_eq!(objects.content(id("blob", &data)), Some(data.as_slice()));
            true
        }
        Some(_) | None => {
            assert!(read.is_err(), "what the document does not allow");
            false
        }
    }
}

fn hex(pair: &[u8]) -> u8 {
    u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()
}

/// The document's own words in code: two sizes, then copies and insertions.
fn applied(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut at = 0;
    let mut next = || {
        let byte = delta.get(at).copied();
        at += 1;
        byte
    };
    let mut size = || {
        let mut value = 0_u128;
        for shift in (0..).step_by(7) {
            let byte = next()?;
            if shift < 64 {
                value |= u128::from(byte & 0x7f) << shift;
            } else if byte & 0x7f != 0 {
                return None;
            }
            if byte & 0x80 == 0 {
                return (value <= u128::from(u64::MAX)).then_some(value);
            }
            if shift > 100 {
                return None;
            }
        }
        None
    };
    let (from, to) = (size()?, size()?);
    let mut data = Vec::new();
    while let Some(byte) = next() {
        if byte & 0x80 != 0 {
            let mut part = |flags: std::ops::Range<u32>| {
                let mut value = 0_usize;
                for (place, flag) in flags.enumerate() {
                    if byte & 1 << flag != 0 {
                        value |= usize::from(next()?) << (8 * place);
                    }
                }
                Some(value)
            };
            let (offset, length) = (part(0..4)?, part(4..7)?);
            let length = if length == 0 { 0x10000 } else { length };
            data.extend(base.get(offset..offset.checked_add(length)?)?);
        } else if byte == 0 {
            return None;
        } else {
            for _ in 0..byte {
                data.push(next()?);
            }
        }
    }
    (from == base.len() as u128 && to == data.len() as u128).then_some(data)
}

fn commit(bytes: &[u8]) -> bool {
    let wanted = id("commit", bytes);
    let answer = fetched(&packed(&[entry(1, b"", bytes)]));
    let Ok(objects) = fetch(&answer, wanted) else {
        assert!(bytes.len() > BOUNDS.object_bytes, "a commit of any bytes can be sent");
        return false;
    };
    let Ok(commit) = objects.commit(wanted) else { return false };
    let text = String::from_utf8_lossy(bytes);
    let folded = text.to_ascii_lowercase();
    assert!(folded.starts_with(&format!("tree {}", commit.tree)), "{text:?}");
    assert!(commit.parents.iter().all(|parent| folded.contains(&format!("\nparent {parent}"))));
    assert!(text.ends_with(commit.message.as_str()), "{:?} in {text:?}", commit.message);
    let words = commit.author.len() + commit.committer.len() + commit.message.len();
    assert!(words <= 3 * bytes.len() && !commit.author.contains('\n') && !commit.committer.contains('\n'));
    true
}

/// A folder, in which corpora name one file and one folder that are there.
fn tree(bytes: &[u8]) -> bool {
    const FILE: &[u8] = b"tag: 1\n";
    let below = [b"100644 values.yaml\0".to_vec(), raw(id("blob", FILE))].concat();
    let root = id("tree", bytes);
    let commit =
        [format!("tree {root}\n").as_bytes(), b"author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n"].concat();
    let wanted = id("commit", &commit);
    let pack = packed(&[entry(1, b"", &commit), entry(2, b"", bytes), entry(2, b"", &below), entry(3, b"", FILE)]);
    let answer = fetched(&pack);
    let files = fetch(&answer, wanted).and_then(|objects| {
        let files = objects.files(wanted, None).map_err(|error| error.to_string())?;
        unchanged(&objects, wanted);
        Ok(files)
    });
    if let Ok(files) = &files {
        for file in files {
            let parts: Vec<&str> = file.path.split('/').collect();
            assert!(!parts.iter().any(|part| ["", ".", "..", ".git"].contains(part)), "{:?}", file.path);
        }
    }
    let Ok(snapshot) = snapshot(&answer, wanted) else { return false };
    let files = files.expect("what may be written to a disk can be read");
    let mut written = BTreeSet::new();
    for (path, node) in snapshot.nodes() {
        let path = String::from_utf8_lossy(path).into_owned();
        assert!(!path.starts_with('/') && !path.split(['/', '\\']).any(|part| [".", "..", ".git"].contains(&part)));
        if let Node::File(id, _) = node {
            assert_eq!(snapshot.content(*id).unwrap(), FILE, "the one file that there is");
            written.insert((path, *id));
        }
    }
    let read: BTreeSet<(String, Oid)> = files.into_iter().map(|file| (file.path, file.id)).collect();
    assert!(read.is_subset(&written), "{read:?} and {written:?}");
    assert!(snapshot.bytes() <= BOUNDS.unpacked_bytes);
    true
}

fn raw(id: Oid) -> Vec<u8> {
    id.to_string().as_bytes().chunks(2).map(hex).collect()
}

/// No change makes no commit.
fn unchanged(objects: &Objects, base: Oid) {
    let draft = Draft { base, parent: base, author: "A <a@b>", at: 1, message: "x", signer: None };
    let built: Result<Option<Built>, _> = objects.build(&draft, &Default::default());
    assert!(built.is_err() || built.is_ok_and(|built| built.is_none()));
}

/// What a server says of a push. The branch is read again and is as it was: so nothing was done, whatever is said.
fn push_report(bytes: &[u8]) -> bool {
    let old = id("commit", COMMIT);
    let report = Bytes::copy_from_slice(bytes);
    let remote = remote(move |request| {
        let capabilities = "report-status side-band-64k ofs-delta";
        if request.method() == Method::GET {
            let first = line(format!("{old} refs/heads/main\0{capabilities}\n").as_bytes());
            return [first, b"0000".to_vec()].concat().into();
        }
        if request.uri().to_string().contains("receive-pack") {
            return report.clone();
        }
        [line(format!("{old} refs/heads/main\n").as_bytes()), b"0000".to_vec()].concat().into()
    });
    let pushed = api::run(async { remote.speaking_v2().push("main", Some(old), None).await });
    match pushed {
        Ok(pushed) => {
            assert_eq!(pushed, Pushed::ForwardOnly, "the branch is as it was");
            true
        }
        Err(error) => {
            let words = error.to_string();
            assert!(words.len() <= 16 * 1_024, "{} bytes", words.len());
            words.contains("the server says")
        }
    }
}
