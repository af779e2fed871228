//! The import picture of `src`: which room names which.
//!
//! A *floor* is a folder or a file at the top of `src`; each file of a floor is a *room*. Further down, a module that its
//! parent declares with `pub` is a room too. One that is declared without is a private part of its parent's room: pieces of
//! one `impl` name each other, and no other room can tell. Only code that runs in production counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::none;
use crate::source::{module_of, rust};

/// The floors from the bottom up, and the floors that each may name; the picture is in ARCHITECTURE.md.
const FLOORS: [(&str, &[&str]); 12] = [
    ("domain", &[]),
    ("forge", &["domain"]),
    ("sandbox", &["domain"]),
    ("config", &["domain"]),
    ("telemetry", &["config", "domain"]),
    ("adapters", &["config", "domain", "forge"]),
    ("actors", &["domain", "telemetry"]),
    ("http", &["actors", "domain", "telemetry"]),
    ("app", &["actors", "adapters", "config", "domain", "http", "telemetry"]),
    ("demo", &["actors", "adapters", "app", "config", "domain", "http", "sandbox"]),
    ("cli", &["actors", "adapters", "app", "config", "demo", "domain", "http", "telemetry"]),
    ("main", &["cli"]),
];

/// Floors that are crates of their own: there, `crate` is the floor itself.
const CRATES: [&str; 3] = ["domain", "forge", "sandbox"];

/// Rooms of a floor that are part of a circle today. These numbers only ever fall; a floor that is not here has no circle.
const CIRCLING: [(&str, usize); 3] = [("app", 2), ("config", 8), ("domain", 3)];

/// Modules by their path (`actors::rollout::hosts`), with their code.
struct Picture {
    modules: BTreeMap<String, String>,
    /// Modules whose parent declares them without `pub`.
    private: BTreeSet<String>,
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
        let mut private = BTreeSet::new();
        for (module, code) in &modules {
            let hidden = code.lines().filter(|line| line.starts_with("mod ")).filter_map(module_of);
            private.extend(hidden.map(|child| format!("{module}::{child}")));
        }
        Self { modules, private }
    }

    /// The room that a module is, or is a part of.
    fn room<'a>(&self, module: &'a str) -> &'a str {
        match module.rsplit_once("::") {
            Some((parent, _)) if parent.contains("::") && self.private.contains(module) => self.room(parent),
            _ => module,
        }
    }

    /// What `module` names, from the top: `crate::actors::Env` is `["actors", "Env"]`, and in the domain
    /// `crate::paths` is `["domain", "paths"]`.
    fn named(&self, module: &str) -> Vec<Vec<String>> {
        let home: Vec<&str> = module.split("::").collect();
        let code = self.modules.get(module).map_or("", String::as_str);
        let from_top = |path: String| {
            let mut steps: Vec<&str> = path.split("::").collect();
            let ups = steps.iter().take_while(|step| **step == "super").count();
            let own_crate = usize::from(CRATES.contains(&home[0]));
            let start = match *steps.first()? {
                "crate" => &home[..own_crate],
                "allclear" | "domain" | "forge" | "sandbox" => &[],
                "self" => &home[..],
                "super" => &home[..home.len().saturating_sub(ups)],
                child if self.modules.contains_key(&format!("{module}::{child}")) => &home[..],
                _ => return None,
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

    /// For each room, the other rooms that it names.
    fn arrows(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for module in self.modules.keys() {
            let room = self.room(module);
            let named = self.named(module).into_iter().filter_map(|path| self.module_on(&path));
            let others = named.map(|named| self.room(&named).to_owned()).filter(|named| named != room);
            arrows.entry(room.to_owned()).or_default().extend(others);
        }
        arrows
    }
}

/// The rooms that lead back to themselves.
fn circling(arrows: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&String> {
    let leads_back = |room: &&String| {
        let mut reached: BTreeSet<&String> = BTreeSet::new();
        let mut next: Vec<&String> = vec![room];
        while let Some(at) = next.pop() {
            next.extend(arrows.get(at).into_iter().flatten().filter(|named| reached.insert(named)));
        }
        reached.contains(room)
    };
    arrows.keys().filter(leads_back).collect()
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

#[test]
fn no_arrow_leads_back_up() {
    let picture = Picture::of_src();
    let mut found = Vec::new();
    for (at, (floor, may)) in FLOORS.iter().enumerate() {
        let is_below = |named: &&&str| FLOORS[..at].iter().any(|(below, _)| below == *named);
        found.extend(
            may.iter().filter(|named| !is_below(named)).map(|named| format!("{floor} may name {named} above it")),
        );
    }
    for module in picture.modules.keys() {
        let floor = module.split("::").next().unwrap_or_default();
        let allowed = FLOORS.iter().find(|(name, _)| *name == floor).map(|(_, allowed)| *allowed);
        let Some(allowed) = allowed else {
            found.push(format!("{floor} is not on the list"));
            continue;
        };
        for named in picture.named(module).iter().filter_map(|path| path.first()) {
            if named != floor && !allowed.contains(&named.as_str()) {
                found.push(format!("{module} names {named}"));
            }
        }
    }
    none("a floor names another that it may not (FLOORS)", &found);
}

#[test]
fn rooms_name_each_other_in_one_direction() {
    let arrows = Picture::of_src().arrows();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for room in circling(&arrows) {
        *counts.entry(room.split("::").next().unwrap_or_default()).or_default() += 1;
    }
    let counts: Vec<(&str, usize)> = counts.into_iter().collect();
    assert_eq!(
        counts,
        CIRCLING,
        "rooms in circles; lower the numbers of CIRCLING, never raise one: {:#?}",
        circling(&arrows)
    );
}

#[test]
fn a_circle_is_found_through_braces_parents_and_private_parts() {
    let files = [
        ("src/low/mod.rs", "pub mod a;\npub mod b;\npub mod c;\n"),
        ("src/low/a.rs", "use crate::low::{b::{self, Word}, Other};\nmod part;\nfn f() {}\n"),
        ("src/low/a/part.rs", "use super::Whole;\n"),
        ("src/low/b.rs", "fn f() { let x = super::c::make(); }\n"),
        ("src/low/c.rs", "pub(super) use crate::low::a::part::Thing;\n"),
        ("src/high.rs", "use crate::low::a::Whole;\n"),
    ];
    let picture = Picture::new(files.into_iter().map(|(path, code)| (path.to_owned(), code.to_owned())));
    let arrows = picture.arrows();
    let named = |room: &str| arrows[room].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(named("low::a"), ["low", "low::b"]);
    assert_eq!(named("low::b"), ["low::c"]);
    assert_eq!(named("low::c"), ["low::a"]);
    assert_eq!(named("high"), ["low::a"]);
    assert_eq!(circling(&arrows).into_iter().collect::<Vec<_>>(), ["low::a", "low::b", "low::c"]);
}
