//! Several apps that move as one: their revisions together are the revision of the set, `api=1.2,web=3.4`.
//!
//! A *place* is a namespace of a cluster, with all apps of the set. It is seen as one target: there when all apps are, ready when all
//! are, at the set that they say together. So whatever is decided of one app is decided of a set, and what was never ready together in
//! one place is no revision of any.
//!
//! Where a set is on its way into an environment, one app gets there before another. Those between are no set that anybody wanted: the
//! place is not ready then.
//!
//! Not for how their revision is written (`set`), nor for what is decided of a place (`judge`).

use crate::apps::app::{NoRevision, Present, Sight, TargetKey};
use crate::apps::ready::{self, Unfit};
use crate::pipeline::judge::Sights;
use crate::pipeline::set::{SET_BYTES_MAX, joined, parts};
use crate::pipeline::spec::{EnvironmentSpec, Spec};
use crate::pipeline::status::{EnvironmentStatus, Phase, Status};
use kernel::id::Revision;

impl EnvironmentSpec {
    /// The objects that are looked at: its targets, or the apps of its places.
    pub fn members(&self) -> impl Iterator<Item = &TargetKey> {
        let alone: &[TargetKey] = if self.parts.is_empty() { &self.targets } else { &[] };
        alone.iter().chain(self.parts.iter().flatten())
    }
}

impl Spec {
    /// Whether all targets of an environment can be at a revision, as far as its form says.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn may_have(&self, own: &EnvironmentSpec, revision: &Revision) -> Result<(), Unfit> {
        let form = |target: &TargetKey, revision: &Revision| ready::form_of_revision(&target.app, &revision.0);
        let Some(place) = own.parts.first() else {
            return own.targets.first().map_or(Ok(()), |target| form(target, revision));
        };
        let wanted = || self.apps.iter().map(|app| format!("{app}=…")).collect::<Vec<_>>().join(",");
        let parts = parts(&self.apps, revision).ok_or_else(|| Unfit::Set(wanted()))?;
        if revision.0.len() > SET_BYTES_MAX {
            return Err(Unfit::Long);
        }
        place.iter().zip(&parts).try_for_each(|(target, (_, revision))| form(target, revision))
    }
}

/// Sees each place of a set by what is seen of its apps. Without a set, nothing is done.
pub(super) fn see_places(spec: &Spec, status: &Status, sights: &mut Sights) {
    if spec.apps.is_empty() {
        return;
    }
    for environment in &spec.environments {
        let coming = status.environment(&environment.name).and_then(coming);
        for (place, members) in environment.targets.iter().zip(&environment.parts) {
            let seen: Option<Vec<&Sight>> = members.iter().map(|member| sights.get(member)).collect();
            match seen.map(|seen| together(&spec.apps, &seen, coming.as_ref())) {
                Some(sight) => sights.insert(place.clone(), sight),
                None => sights.remove(place),
            };
        }
    }
}

/// What is on its way into an environment, and may have got there in part.
struct Coming<'a> {
    revision: &'a Revision,
    /// What the environment had: an app that has the same in both has not come.
    had: Vec<&'a Revision>,
    /// Something deploys it, as far as that is known. Then a place that is between is on its way to it, as an app is whose pods are replaced.
    is_landed: bool,
}

/// The promotion that has started. Where the next one waits, or none does: the last one, of which a part may be there for good.
fn coming(known: &EnvironmentStatus) -> Option<Coming<'_>> {
    let last = known.promotion.as_ref()?;
    let had = [last.from.as_ref(), known.reached.as_ref()];
    if last.phase == Phase::Waiting {
        // What was superseded is what the environment is at, for those who see it whole.
        let revision = last.from.as_ref().filter(|from| known.reached.as_ref() != Some(*from))?;
        return Some(Coming { revision, had: known.reached.iter().collect(), is_landed: true });
    }
    let is_over = last.phase == Phase::Completed || last.started_ms.is_none();
    let is_landed = last.phase >= Phase::Landed;
    (!is_over).then(|| Coming { revision: &last.revision, had: had.into_iter().flatten().collect(), is_landed })
}

fn together(apps: &[String], seen: &[&Sight], coming: Option<&Coming<'_>>) -> Sight {
    let mut all: Vec<(&String, &Present)> = Vec::new();
    for (app, sight) in apps.iter().zip(seen) {
        match sight {
            Sight::Unknown(why) => return Sight::Unknown(format!("{app}: {why}")),
            Sight::Absent => {}
            Sight::Present(present) => all.push((app, present)),
        }
    }
    if all.len() < apps.len() {
        return Sight::Absent;
    }
    let unready = all.iter().find_map(|(app, one)| Some(format!("{app}: {}", one.unready.as_ref()?)));
    let said: Result<Vec<_>, NoRevision> = all
        .iter()
        .map(|(app, one)| match &one.revision {
            Ok(revision) => Ok((*app, revision)),
            Err(why) => Err(NoRevision::Unusable(format!("{app}: {why}"))),
        })
        .collect();
    let between =
        said.as_ref().ok().zip(coming).and_then(|(said, coming)| Some((between(apps, said, coming)?, coming)));
    let uid = all.iter().map(|(_, one)| one.uid.as_str()).collect::<Vec<_>>().join("+");
    let (unready, revision) = match between {
        Some((missing, Coming { revision, is_landed: true, .. })) => {
            (unready.or(Some(missing)), Ok((*revision).clone()))
        }
        Some((missing, _)) => (unready.or(Some(missing)), said.and_then(joined)),
        None => (unready, said.and_then(joined)),
    };
    Sight::Present(Present { uid, unready, revision })
}

/// That some apps are at what is coming and others are not yet, in words.
fn between(apps: &[String], said: &[(&String, &Revision)], coming: &Coming<'_>) -> Option<String> {
    let wanted = parts(apps, coming.revision)?;
    let had: Vec<_> = coming.had.iter().filter_map(|had| parts(apps, had)).collect();
    if had.is_empty() && !coming.is_landed {
        return None;
    }
    let is_kept = |number: usize| had.iter().any(|had| had.get(number) == wanted.get(number));
    let pairs = || said.iter().zip(&wanted).enumerate();
    let has_come = pairs().any(|(number, ((_, is), (_, wanted)))| *is == wanted && !is_kept(number));
    let missing = pairs().find(|(_, ((_, is), (_, wanted)))| *is != wanted);
    let (_, ((app, is), (_, wanted))) = missing.filter(|_| has_come)?;
    Some(format!("{app} is at {is}, and {wanted} is on its way"))
}
