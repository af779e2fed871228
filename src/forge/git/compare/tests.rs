use super::super::Bounds;
use super::super::object::Object;
use super::super::pack::Store;
use super::*;

/// Commits and folders as a server has them.
struct Library(Objects);

impl Library {
    fn new() -> Self {
        Self(Objects::new(Bounds::default()))
    }

    fn kept(&mut self, kind: Kind, data: Vec<u8>) -> Oid {
        self.0.insert(Object { kind, data }).expect("memory has room")
    }

    fn folder(&mut self, names: &[(&str, &str, Oid)]) -> Oid {
        let mut data = Vec::new();
        for (mode, name, id) in names {
            data.extend(format!("{mode} {name}\0").bytes());
            data.extend(id.as_bytes());
        }
        self.kept(Kind::Tree, data)
    }

    /// A commit of this folder as `infra/prod`, beside another one.
    fn commit(&mut self, prod: (&str, Oid), other: u8) -> Oid {
        let infra = self.folder(&[("100644", "main.tf", blob(other)), (prod.0, "prod", prod.1)]);
        let root = self.folder(&[("100644", "README.md", blob(other)), ("40000", "infra", infra)]);
        self.kept(Kind::Commit, format!("tree {root}\nauthor A <a@example.com> 1 +0000\n\nm\n").into_bytes())
    }

    fn known(&self, one: Oid, other: Oid, paths: &[&str]) -> Known {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        known(&self.0, [one, other], &paths).expect("it is whole")
    }
}

fn blob(number: u8) -> Oid {
    Oid::new([number; Oid::BYTES])
}

#[test]
fn a_path_is_the_same_where_its_mode_and_its_content_are() {
    let mut all = Library::new();
    let (one, two) = (all.folder(&[("100644", "a.tf", blob(1))]), all.folder(&[("100644", "a.tf", blob(2))]));
    let base = all.commit(("40000", one), 1);
    let cases = [
        (("40000", one), 1, Known::Alike, "the same commit in all but its message"),
        (("40000", one), 2, Known::Alike, "another file beside it"),
        (("40000", two), 1, Known::Differ, "another file in it"),
        (("100644", one), 2, Known::Differ, "another mode"),
        (("120000", one), 2, Known::Differ, "a link"),
    ];
    for (prod, other, expected, why) in cases {
        let head = all.commit(prod, other);
        assert_eq!(all.known(base, head, &["infra/prod"]), expected, "{why}");
        assert_eq!(all.known(head, base, &["infra/prod"]), expected, "{why}, the other way");
    }
    let beside = all.commit(("40000", one), 2);
    assert_eq!(all.known(base, beside, &["infra/prod", "README.md"]), Known::Differ, "each path counts");
    assert_eq!(all.known(base, beside, &[""]), Known::Differ, "the whole repository");
    assert_eq!(all.known(base, beside, &["infra/prod/a.tf", "infra/prod/none", "none/at/all"]), Known::Alike);
}

#[test]
fn what_appears_or_goes_is_a_change_and_what_neither_has_is_none() {
    let mut all = Library::new();
    let folder = all.folder(&[("100644", "a.tf", blob(1))]);
    let (with, file) = (all.commit(("40000", folder), 1), all.commit(("100644", blob(9)), 2));
    for path in ["infra/prod/a.tf", "infra/prod"] {
        assert_eq!(all.known(with, file, &[path]), Known::Differ, "{path}");
        assert_eq!(all.known(file, with, &[path]), Known::Differ, "{path}");
    }
    assert_eq!(all.known(with, file, &["infra/prod/b.tf"]), Known::Alike, "it was in neither");
}

#[test]
fn a_link_on_the_way_is_never_the_same_though_nothing_in_it_differs() {
    let mut all = Library::new();
    let (one, two) = (all.commit(("120000", blob(5)), 1), all.commit(("120000", blob(5)), 2));
    for path in ["infra/prod", "infra/prod/deeper"] {
        assert_eq!(all.known(one, two, &[path]), Known::Differ, "{path}");
    }
    assert_eq!(all.known(one, one, &["infra/prod"]), Known::Alike, "of one root, all that it can lead to is the same");
}

#[test]
fn commits_that_are_too_large_are_asked_about_again_where_the_server_failed_at_their_folders() {
    let large = || Failure::lasting("more than 8 MiB in one answer");
    let broken = Failure::broken("the server answers 502");
    let said = large().after(&broken);
    assert_eq!(said.retry, Retry::Later);
    assert_eq!(said.cause, "more than 8 MiB in one answer; before that: the server answers 502");
    let humble = Failure::answer("the server says: not our ref");
    assert_eq!(large().after(&humble).retry, Retry::Never, "it gives out no folders, now or later");
    assert_eq!(Failure::denied("401").after(&broken).retry, Retry::Never, "a person must mend that");
}

#[test]
fn folders_that_are_not_here_are_named_and_only_those() {
    let mut all = Library::new();
    let folder = all.folder(&[]);
    let (one, two) = (all.commit(("40000", folder), 1), all.commit(("40000", folder), 2));
    let mut here = Library::new();
    let take = |here: &mut Library, id: Oid| here.0.insert(all.0.get(id).expect("it is there").clone()).expect("room");
    for commit in [one, two] {
        take(&mut here, commit);
    }
    let mut rounds = 0;
    while let Known::Needs(folders) = here.known(one, two, &["infra/prod"]) {
        rounds += 1;
        assert_eq!(folders.len(), 2, "one of each side");
        folders.into_iter().for_each(|id| _ = take(&mut here, id));
    }
    assert_eq!((rounds, here.known(one, two, &["infra/prod"])), (2, Known::Alike), "the last folder is not needed");
}
