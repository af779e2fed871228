//! Which environments come after which: what people write as `after`, put in an order in which each comes after all that it follows.
//!
//! ```text
//! the first in the list       revisions appear there; it comes after none
//! without `after`             after the one just before it in the list
//! without targets             passed over: what follows it follows what it would follow
//! ```
//!
//! Not for what follows from it; that is `judge`.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::Environment;

/// An environment as it stands in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: Environment,
    /// Those that it names.
    pub after: Option<Vec<Environment>>,
    /// It has a target.
    pub counts: bool,
}

/// An environment in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    pub name: Environment,
    /// Those just before it that have targets.
    pub after: Vec<Environment>,
}

/// Why a list has no order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Tangled {
    #[error(
        "environment {0}: it is the first, in which revisions appear, and can come after no other: put it later in the list, or drop `after`"
    )]
    First(Environment),
    #[error(
        "environment {0}: `after` names none; without it the environment comes after the one before it in the list"
    )]
    Empty(Environment),
    #[error("environment {0}: `after` names {1} twice")]
    Twice(Environment, Environment),
    #[error("environment {name}: `after` names {missing}, which is no environment of this Pipeline; it has {}", .has.join(", "))]
    Unknown { name: Environment, missing: Environment, has: Vec<String> },
    #[error("environment {0} has no target, and {1} come after it: where would revisions appear?")]
    Headless(Environment, String),
    #[error("environments come after each other in a circle: {}", .0.iter().map(|one| one.0.as_str()).collect::<Vec<_>>().join(" after "))]
    Circle(Vec<Environment>),
}

/// Those that have targets, each after all that it follows, and otherwise in the order of the list. No two have one name.
///
/// # Errors
/// Why they have no order.
pub fn arrange(list: &[Listed]) -> Result<Vec<Placed>, Tangled> {
    let after = written(list)?;
    let mut placed: Vec<Placed> = Vec::new();
    // What stands for an environment in those that follow it.
    let mut known: BTreeMap<&Environment, Vec<Environment>> = BTreeMap::new();
    while known.len() < list.len() {
        let is_next = |one: &&Listed| {
            !known.contains_key(&one.name) && before_of(&after, &one.name).all(|before| known.contains_key(before))
        };
        let Some(next) = list.iter().find(is_next) else { return Err(circle(list, &after, &known)) };
        let mut before: Vec<Environment> = Vec::new();
        for one in before_of(&after, &next.name).filter_map(|one| known.get(one)).flatten() {
            if !before.contains(one) {
                before.push(one.clone());
            }
        }
        if next.counts {
            known.insert(&next.name, vec![next.name.clone()]);
            placed.push(Placed { name: next.name.clone(), after: before });
        } else {
            known.insert(&next.name, before);
        }
    }
    let first: Vec<String> = placed.iter().filter(|one| one.after.is_empty()).map(|one| one.name.0.clone()).collect();
    match list.first().filter(|_| first.len() > 1) {
        Some(head) => Err(Tangled::Headless(head.name.clone(), first.join(" and "))),
        None => Ok(placed),
    }
}

type After<'a> = BTreeMap<&'a Environment, Vec<&'a Environment>>;

fn before_of<'a>(after: &After<'a>, name: &Environment) -> impl Iterator<Item = &'a Environment> {
    after.get(name).into_iter().flatten().copied()
}

/// What each comes after, as far as that can be at all.
fn written(list: &[Listed]) -> Result<After<'_>, Tangled> {
    let names: BTreeSet<&Environment> = list.iter().map(|one| &one.name).collect();
    let mut all = After::new();
    let mut before = None;
    for one in list {
        let name = one.name.clone();
        let after = match &one.after {
            None => before.into_iter().collect(),
            Some(_) if before.is_none() => return Err(Tangled::First(name)),
            Some(after) if after.is_empty() => return Err(Tangled::Empty(name)),
            Some(after) => after.iter().collect::<Vec<_>>(),
        };
        if let Some(missing) = after.iter().find(|one| !names.contains(*one)) {
            let has = list.iter().map(|one| one.name.0.clone()).collect();
            return Err(Tangled::Unknown { name, missing: (*missing).clone(), has });
        }
        let mut once = BTreeSet::new();
        if let Some(twice) = after.iter().find(|one| !once.insert(**one)) {
            return Err(Tangled::Twice(name, (*twice).clone()));
        }
        all.insert(&one.name, after);
        before = Some(&one.name);
    }
    Ok(all)
}

/// A circle among those that have no place: each of them comes after another one of them.
fn circle(list: &[Listed], after: &After<'_>, known: &BTreeMap<&Environment, Vec<Environment>>) -> Tangled {
    let mut path: Vec<&Environment> = Vec::new();
    let mut next = list.iter().map(|one| &one.name).find(|name| !known.contains_key(name));
    while let Some(name) = next {
        let again = path.iter().position(|one| *one == name);
        path.push(name);
        if let Some(again) = again {
            path.drain(..again);
            break;
        }
        next = before_of(after, name).find(|before| !known.contains_key(before));
    }
    Tangled::Circle(path.into_iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Environment {
        Environment(name.to_owned())
    }

    /// `prod<eu,us` comes after eu and us; `-qa` has no target.
    fn arranged(list: &[&str]) -> Result<Vec<String>, String> {
        let listed = |text: &&str| {
            let (name, after) = text.split_once('<').map_or((*text, None), |(name, after)| (name, Some(after)));
            let named = |after: &str| after.split(',').filter(|one| !one.is_empty()).map(environment).collect();
            Listed {
                name: environment(name.trim_start_matches('-')),
                after: after.map(named),
                counts: !name.starts_with('-'),
            }
        };
        let all: Vec<Listed> = list.iter().map(listed).collect();
        let shown = |one: Placed| {
            let after: Vec<String> = one.after.into_iter().map(|one| one.0).collect();
            format!("{}<{}", one.name, after.join(","))
        };
        arrange(&all).map(|placed| placed.into_iter().map(shown).collect()).map_err(|why| why.to_string())
    }

    #[test]
    fn a_list_is_a_line_and_after_makes_it_a_graph() {
        assert_eq!(arranged(&["dev", "staging", "prod"]).unwrap(), ["dev<", "staging<dev", "prod<staging"]);
        let diamond = ["dev", "eu<dev", "us<dev", "prod<eu,us"];
        assert_eq!(arranged(&diamond).unwrap(), ["dev<", "eu<dev", "us<dev", "prod<eu,us"]);
        let shuffled = ["dev", "prod<us,eu", "us<dev", "eu<dev", "last"];
        assert_eq!(arranged(&shuffled).unwrap(), ["dev<", "us<dev", "eu<dev", "prod<us,eu", "last<eu"]);
    }

    #[test]
    fn what_follows_an_environment_without_targets_follows_those_before_it() {
        assert_eq!(arranged(&["dev", "-qa", "prod"]).unwrap(), ["dev<", "prod<dev"]);
        let joined = ["dev", "eu<dev", "-us<dev", "-qa<us,eu", "prod<qa,eu"];
        assert_eq!(arranged(&joined).unwrap(), ["dev<", "eu<dev", "prod<dev,eu"]);
        assert_eq!(arranged(&["-dev", "eu<dev", "us"]).unwrap(), ["eu<", "us<eu"]);
    }

    #[test]
    fn what_has_no_order_is_refused_by_name() {
        let wrong = |list: &[&str]| arranged(list).unwrap_err();
        assert_eq!(
            wrong(&["dev", "eu<dev,prod", "us<eu", "prod<us"]),
            "environments come after each other in a circle: eu after prod after us after eu"
        );
        assert_eq!(wrong(&["dev", "eu<eu"]), "environments come after each other in a circle: eu after eu");
        assert_eq!(
            wrong(&["dev", "lost<eu", "eu<us", "us<eu"]),
            "environments come after each other in a circle: eu after us after eu"
        );
        assert_eq!(
            wrong(&["dev", "eu<qa"]),
            "environment eu: `after` names qa, which is no environment of this Pipeline; it has dev, eu"
        );
        assert!(
            wrong(&["-dev", "eu<dev", "us<dev"])
                .starts_with("environment dev has no target, and eu and us come after it")
        );
        assert!(wrong(&["dev<eu", "eu<dev"]).starts_with("environment dev: it is the first"));
        assert!(wrong(&["dev", "eu<"]).starts_with("environment eu: `after` names none"));
        assert_eq!(wrong(&["dev", "eu<dev,dev"]), "environment eu: `after` names dev twice");
    }
}
