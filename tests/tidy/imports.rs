//! The import picture of `src`: which room names which.
//!
//! A *floor* is a folder or a file at the top of `src`; each folder or file of the domain is a *room*. Floors and rooms have an order, and in
//! every folder what lies beside each other has one, too. Only code that runs in production counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::none;
use crate::source::rust;

/// The floors from the bottom up, and the floors that each may name; the picture is in ARCHITECTURE.md.
const FLOORS: [(&str, &[&str]); 15] = [
    ("audit", &[]),
    ("domain", &[]),
    ("apiserver", &["domain"]),
    ("forge", &["domain"]),
    ("sandbox", &["domain"]),
    ("config", &["domain"]),
    ("telemetry", &["config", "domain"]),
    ("adapters", &["apiserver", "config", "domain", "forge"]),
    ("actors", &["domain", "telemetry"]),
    ("looking", &["actors", "adapters", "config", "domain"]),
    ("http", &["actors", "domain", "looking", "telemetry"]),
    ("app", &["actors", "adapters", "config", "domain", "http", "looking", "telemetry"]),
    ("demo", &["actors", "adapters", "app", "config", "domain", "http", "sandbox"]),
    (
        "cli",
        &[
            "actors",
            "adapters",
            "apiserver",
            "app",
            "audit",
            "config",
            "demo",
            "domain",
            "http",
            "looking",
            "telemetry",
        ],
    ),
    ("main", &["cli"]),
];

/// The crates of the domain from the bottom up. What purges and what moves revisions know nothing of each other; the compiler holds that,
/// too, by their manifests.
const DOMAIN: [(&str, &[&str]); 6] = [
    ("kernel", &[]),
    ("kinds", &["kernel"]),
    ("notices", &["kernel"]),
    ("proof", &["kernel"]),
    ("purge", &["kernel", "kinds", "notices", "proof"]),
    ("objects", &["kernel", "kinds", "notices"]),
];

/// The rooms of the purge from the bottom up, and the rooms that each may name.
const PURGE: [(&str, &[&str]); 12] = [
    ("caches", &[]),
    ("records", &[]),
    ("traffic", &["records"]),
    ("workloads", &["records"]),
    ("bounds", &["caches", "records", "workloads"]),
    ("site", &["bounds"]),
    ("purges", &["bounds"]),
    ("agreement", &["bounds", "records"]),
    ("rollouts", &["agreement", "bounds", "caches", "purges", "records", "site", "workloads"]),
    ("broker", &["agreement", "records", "rollouts"]),
    ("deployments", &["bounds", "records", "rollouts", "workloads"]),
    ("ports", &["agreement", "caches", "purges", "records", "rollouts", "site", "workloads"]),
];

/// The same of objects of our own: the kit, and the two kinds on it.
const OBJECTS: [(&str, &[&str]); 14] = [
    ("form", &[]),
    ("gates", &[]),
    ("kept", &[]),
    ("status", &["form"]),
    ("own_status", &["kept"]),
    ("owned", &["kept", "own_status", "status"]),
    ("asked", &["form", "gates"]),
    ("groups", &["kept"]),
    ("watched", &["kept"]),
    ("apps", &[]),
    ("history", &["form"]),
    ("pipeline", &["apps", "asked", "form", "gates", "history", "kept", "owned", "status"]),
    ("repo", &["apps", "asked", "form", "gates", "history", "kept", "owned", "status"]),
    ("ports", &["apps", "asked", "gates", "history", "kept", "pipeline", "repo"]),
];

/// Crates of their own: there, `crate` is the crate itself.
const CRATES: [&[&str]; 10] = [
    &["audit"],
    &["domain", "kernel"],
    &["domain", "kinds"],
    &["domain", "notices"],
    &["domain", "proof"],
    &["domain", "purge"],
    &["domain", "objects"],
    &["apiserver"],
    &["forge"],
    &["sandbox"],
];

/// Modules by their path (`actors::rollout::hosts`), with their code.
struct Picture {
    modules: BTreeMap<String, String>,
}

impl Picture {
    fn of_src() -> Self {
        let files = rust(&["src"]).into_iter().filter(|file| file.path != "src/lib.rs");
        Self::new(files.map(|file| (file.path.clone(), file.production())))
    }

    fn new(files: impl Iterator<Item = (String, String)>) -> Self {
        let mut modules = BTreeMap::new();
        for (path, code) in files {
            let path = path.trim_start_matches("src/").trim_end_matches(".rs");
            let path = path.trim_end_matches("/mod").trim_end_matches("/lib");
            modules.insert(path.replace('/', "::"), code);
        }
        Self { modules }
    }

    /// What `module` names, from the top: `crate::actors::Env` is `["actors", "Env"]`, and `crate::site` in the purge
    /// `["domain", "purge", "site"]`.
    fn named(&self, module: &str) -> Vec<Vec<String>> {
        let home: Vec<&str> = module.split("::").collect();
        let code = self.modules.get(module).map_or("", String::as_str);
        let from_top = |path: String| {
            let mut steps: Vec<&str> = path.trim_start_matches("::").split("::").collect();
            let ups = steps.iter().take_while(|step| **step == "super").count();
            let own_crate = CRATES.into_iter().find(|own| home.starts_with(own)).unwrap_or_default();
            let is_child =
                |name: &str| !path.starts_with("::") && self.modules.contains_key(&format!("{module}::{name}"));
            let start = match *steps.first()? {
                "crate" => own_crate,
                "allclear" => &[],
                "self" => &home[..],
                "super" => &home[..home.len().saturating_sub(ups)],
                child if is_child(child) => &home[..],
                name => CRATES.into_iter().find(|other| other.ends_with(&[name]))?.split_last()?.1,
            };
            steps.retain(|step| !["crate", "allclear", "self", "super"].contains(step));
            Some(start.iter().copied().chain(steps).map(str::to_owned).collect())
        };
        paths(code).into_iter().filter_map(from_top).collect()
    }

    /// The innermost module on a path: `["actors", "Env"]` is in `actors`.
    fn module_on(&self, path: &[String]) -> Option<String> {
        let prefixes = (1..=path.len()).rev().map(|length| path[..length].join("::"));
        prefixes.into_iter().find(|prefix| self.modules.contains_key(prefix))
    }

    /// For each folder, and each file or folder in it, those beside it that it names. What it names of the folder itself counts nothing:
    /// pieces of one `impl` name their type.
    fn arrows(&self) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
        let mut arrows: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for module in self.modules.keys() {
            let own: Vec<&str> = module.split("::").collect();
            for named in self.named(module).iter().filter_map(|path| self.module_on(path)) {
                let named: Vec<&str> = named.split("::").collect();
                let common = own.iter().zip(&named).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (own.get(common), named.get(common)) {
                    let folder = arrows.entry(own[..common].join("::")).or_default();
                    folder.entry((*from).to_owned()).or_default().insert((*to).to_owned());
                }
            }
        }
        arrows
    }
}

/// Those that lead back to themselves.
fn circling(arrows: &BTreeMap<String, BTreeSet<String>>) -> Vec<&str> {
    let leads_back = |room: &&String| {
        let mut reached: BTreeSet<&String> = BTreeSet::new();
        let mut next: Vec<&String> = vec![room];
        while let Some(at) = next.pop() {
            next.extend(arrows.get(at).into_iter().flatten().filter(|named| reached.insert(named)));
        }
        reached.contains(room)
    };
    arrows.keys().filter(leads_back).map(String::as_str).collect()
}

/// All paths of at least two steps in `code`, with what stands in the braces of a `use` unfolded.
fn paths(code: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), String::new());
    for statement in code.split_inclusive(';') {
        let at = statement.match_indices("use ").map(|(at, _)| at).find(|at| {
            let before = &statement[..*at];
            before.is_empty() || before.ends_with([' ', '\n'])
        });
        let (before, used) = statement.split_at(at.unwrap_or(statement.len()));
        rest.push_str(before);
        let used: String = used.trim_start_matches("use ").chars().filter(|c| !c.is_whitespace()).collect();
        found.extend(unfolded(used.trim_end_matches(';')));
    }
    let is_path = |c: char| c.is_alphanumeric() || "_:".contains(c);
    found.extend(rest.split(|c| !is_path(c)).map(str::to_owned));
    found.retain(|path| path.contains("::"));
    found
}

/// `a::{b::{self, C}, D}`, without blanks, is `a::b::self`, `a::b::C` and `a::D`.
fn unfolded(tree: &str) -> Vec<String> {
    let Some((head, inside)) = tree.split_once('{') else { return vec![tree.to_owned()] };
    let (mut depth, mut branches) = (0, vec![String::new()]);
    for c in inside.strip_suffix('}').unwrap_or(inside).chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            branches.push(String::new());
        } else {
            branches.last_mut().unwrap().push(c);
        }
    }
    branches.iter().flat_map(|branch| unfolded(branch)).map(|path| format!("{head}{path}")).collect()
}

/// What names something above it, or something that it may not: `list` is from the bottom up, and its names stand in the folder `within`.
fn strays(picture: &Picture, list: &[(&str, &[&str])], within: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, (name, may)) in list.iter().enumerate() {
        let is_below = |named: &&&str| list[..at].iter().any(|(below, _)| below == *named);
        found.extend(
            may.iter().filter(|named| !is_below(named)).map(|named| format!("{name} may name {named} above it")),
        );
    }
    for module in picture.modules.keys() {
        let steps: Vec<&str> = module.split("::").collect();
        let Some([own, ..]) = steps.strip_prefix(within).filter(|rest| *rest != ["testing"] && *rest != ["lamp"])
        else {
            continue;
        };
        let Some((_, allowed)) = list.iter().find(|(name, _)| name == own) else {
            found.push(format!("{own} is not on the list"));
            continue;
        };
        for path in picture.named(module) {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let Some([named, ..]) = path.strip_prefix(within) else { continue };
            if named != own && !allowed.contains(named) {
                found.push(format!("{module} names {named}"));
            }
        }
    }
    found
}

#[test]
fn no_arrow_leads_back_up() {
    let picture = Picture::of_src();
    none("a floor names another that it may not (FLOORS)", &strays(&picture, &FLOORS, &[]));
    none("a crate of the domain names another that it may not (DOMAIN)", &strays(&picture, &DOMAIN, &["domain"]));
    none("a room of the purge names another that it may not (PURGE)", &strays(&picture, &PURGE, &["domain", "purge"]));
    let objects = strays(&picture, &OBJECTS, &["domain", "objects"]);
    none("a room of our objects names another that it may not (OBJECTS)", &objects);
}

#[test]
fn what_is_in_a_folder_names_each_other_in_one_direction() {
    let arrows = Picture::of_src().arrows();
    let circles =
        arrows.iter().map(|(folder, arrows)| (folder, circling(arrows))).filter(|(_, circle)| !circle.is_empty());
    let circles: Vec<String> = circles.map(|(folder, circle)| format!("{folder}: {}", circle.join(", "))).collect();
    none("something in a folder leads back to itself by what is beside it", &circles);
}

#[test]
fn a_circle_is_found_through_braces_and_parents() {
    let files = [
        ("src/low/mod.rs", "pub mod a;\npub mod b;\npub mod c;\nuse a::Whole;\n"),
        ("src/low/a.rs", "use crate::low::{b::{self, Word}, Other};\nmod part;\nfn f() {}\n"),
        ("src/low/a/part.rs", "use super::Whole;\n"),
        ("src/low/b.rs", "fn f() { let x = super::c::make(); }\n"),
        ("src/low/c.rs", "pub(super) use crate::low::a::part::Thing;\n"),
        ("src/high.rs", "use crate::low::a::Whole;\n"),
    ];
    let picture = Picture::new(files.into_iter().map(|(path, code)| (path.to_owned(), code.to_owned())));
    let arrows = picture.arrows();
    let named = |folder: &str, of: &str| arrows[folder][of].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(named("low", "a"), ["b"]);
    assert_eq!(named("low", "b"), ["c"]);
    assert_eq!(named("low", "c"), ["a"]);
    assert_eq!(named("", "high"), ["low"]);
    assert_eq!(circling(&arrows["low"]), ["a", "b", "c"]);
    assert!(circling(&arrows[""]).is_empty());
}
