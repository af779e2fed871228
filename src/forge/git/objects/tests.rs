use proptest::prelude::*;
use purge::ports::Retry;

use super::*;

/// A folder with these names in it.
fn folder(names: &[(&str, &str, Oid)]) -> Object {
    let mut data = Vec::new();
    for (mode, name, id) in names {
        data.extend(format!("{mode} {name}\0").bytes());
        data.extend(id.as_bytes());
    }
    Object { kind: Kind::Tree, data }
}

fn kept(objects: &mut Objects, object: Object) -> Oid {
    objects.insert(object).expect("memory has room")
}

fn commit(text: impl Into<Vec<u8>>) -> Object {
    Object { kind: Kind::Commit, data: text.into() }
}

/// A commit of a root folder.
fn commit_of(objects: &mut Objects, tree: Oid) -> Oid {
    kept(objects, commit(format!("tree {tree}\nauthor A <a@example.com> 1 +0000\n\nm\n")))
}

#[test]
fn ids_are_gits() {
    let blob = Object { kind: Kind::Blob, data: b"abcde".to_vec() };
    assert_eq!(blob.id().to_string(), "6a8165460570531a1247bd99a73b53a5a6e500d5", "git hash-object");
    assert_eq!(folder(&[]).id().to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "git's empty tree");
}

#[test]
fn a_folder_that_holds_itself_many_times_over_is_cut_short() {
    let mut objects = Objects::new(Bounds { entries: 5_000, ..Bounds::default() });
    let mut tree = kept(&mut objects, folder(&[("100644", "f", Oid::ZERO)]));
    for _ in 0..30 {
        tree = kept(&mut objects, folder(&["a", "b", "c"].map(|name| ("40000", name, tree))));
    }
    let commit = commit_of(&mut objects, tree);
    let error = objects.files(commit, None).expect_err("3^30 files");
    assert_eq!((error.cause.starts_with("more than 5000 files and folders"), error.retry), (true, Retry::Never));
}

#[test]
fn folders_and_paths_end_somewhere() {
    let mut objects = Objects::new(Bounds { unpacked_bytes: 1_000_000, ..Bounds::default() });
    let mut tree = kept(&mut objects, folder(&[("100644", "f", Oid::ZERO)]));
    for depth in 1..=DEPTH_MAX + 1 {
        tree = kept(&mut objects, folder(&[("40000", "d", tree)]));
        let commit = commit_of(&mut objects, tree);
        let path = "d/".repeat(depth) + "f";
        let files = objects.files(commit, None);
        let draft =
            Draft { base: commit, parent: commit, author: "A <a@example.com>", at: 1, message: "m", signer: None };
        let built = objects.build(&draft, &BTreeMap::from([(path.clone(), Bytes::new())]));
        match depth <= DEPTH_MAX {
            true => assert_eq!((files.expect("files")[0].path == path, built.is_ok()), (true, true), "{depth}"),
            false => assert!(files.is_err() && built.is_err(), "{depth}"),
        }
    }
    let name = "n".repeat(200_000);
    let mut tree = kept(&mut objects, folder(&[("100644", "f", Oid::ZERO)]));
    for _ in 0..10 {
        tree = kept(&mut objects, folder(&[("40000", &name, tree)]));
    }
    let commit = commit_of(&mut objects, tree);
    assert!(objects.files(commit, None).is_err(), "paths of megabytes");
}

#[test]
fn what_the_server_did_not_send_is_missing_in_words() {
    let mut objects = Objects::default();
    let missing = Oid::new([7; 20]);
    assert_eq!(objects.commit(missing).expect_err("missing").retry, Retry::Later);
    let tree = kept(&mut objects, folder(&[("40000", "d", missing)]));
    let commit = commit_of(&mut objects, tree);
    let cause = format!("the server did not send folder {missing} whole");
    assert_eq!(objects.files(commit, None).expect_err("missing").cause, cause);
    assert_eq!(objects.files(commit, Some("d")).expect_err("missing").cause, cause);
    assert_eq!(objects.files(commit, Some("d/e")).expect_err("missing").cause, cause);
    let absent = objects.files(commit, Some("e")).expect_err("absent");
    assert_eq!((absent.cause.as_str(), absent.retry), ("there is no folder e", Retry::Never));
}

#[test]
fn a_trailer_is_a_line_of_the_last_paragraph() {
    let trailer = |message: &str| {
        let commit = Commit {
            tree: Oid::ZERO,
            parents: Vec::new(),
            author: String::new(),
            committer: String::new(),
            message: message.to_owned(),
        };
        commit.trailer("Seq").map(str::to_owned)
    };
    assert_eq!(trailer("title\n\nSeq: 7\n").as_deref(), Some("7"));
    assert_eq!(trailer("title\n\nOther: x\nSeq:7\nSeq: 8 \n\n").as_deref(), Some("8"));
    for none in ["", "Seq: 7", "title\n\nSeq: 7\n\nend", "title\n\nseq: 7", "title\n\nSequence: 7", "title\n\n Seq: 7"]
    {
        assert_eq!(trailer(none), None, "{none}");
    }
}

#[test]
fn a_signed_commit_of_several_parents_is_read() {
    let [tree, one, two] = [1, 2, 3].map(|byte| Oid::new([byte; 20]));
    let text = format!(
        "tree {tree}\nparent {one}\nparent {two}\nauthor Zoë > <z@example.com> 1 +0200\ncommitter C <c@example.com> 2 +0000\n\
         gpgsig -----BEGIN\n \n parent of nothing\n -----END\n\ntitle\n\nbody \u{1}\n"
    );
    let read = Commit::read(text.as_bytes()).expect("a commit");
    assert_eq!((read.tree, read.parents, read.author.as_str()), (tree, vec![one, two], "Zoë > <z@example.com>"));
    assert_eq!(read.message, "title\n\nbody \u{1}\n");
    for broken in ["", "tree 12\nauthor a", "author a <b> 1 +0000\n\nm", &text.replace("parent 0", "parent x")] {
        assert_eq!(Commit::read(broken.as_bytes()), None, "{broken}");
    }
}

proptest! {
    #[test]
    fn reading_any_commit_and_folder_ends(data in proptest::collection::vec(any::<u8>(), 0..100)) {
        let mut objects = Objects::default();
        let tree = kept(&mut objects, Object { kind: Kind::Tree, data: data.clone() });
        let good = commit_of(&mut objects, tree);
        let bad = kept(&mut objects, commit(data));
        let _ = (objects.files(good, None), objects.files(bad, None), objects.commit(bad));
    }
}
