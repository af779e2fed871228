//! What the deployment watcher cannot do, in words: each is logged when it begins, and shown for as long as it lasts.

use std::collections::BTreeMap;

use crate::domain::id::WorkloadId;
use crate::ports::PortError;

/// The troubles of one watcher.
#[derive(Default)]
pub struct Troubles {
    watch: Option<String>,
    baselines: Option<String>,
    listed: Option<String>,
    /// Workloads of which nothing can be recorded, and why; until it can be.
    unreadable: BTreeMap<WorkloadId, String>,
}

impl Troubles {
    /// The watch was interrupted.
    pub fn watch_failed(&mut self, error: &PortError) {
        tracing::warn!(%error, "the watch of workloads was interrupted; starting it again");
        self.watch = Some(error.to_string());
    }

    /// A listing came to its end.
    pub fn watch_works(&mut self) {
        self.watch = None;
    }

    /// How the last writing of baselines ended: with what failed, or with `None` if nothing did.
    pub fn baselines_written(&mut self, failed: Option<String>) {
        if let (Some(why), None) = (&failed, &self.baselines) {
            tracing::warn!(why, "could not write the records of workloads seen for the first time; trying again");
        }
        self.baselines = failed;
    }

    /// How the last attempt ended to remember which namespaces are listed.
    pub fn listed_noted(&mut self, failed: Option<String>) {
        if let (Some(why), None) = (&failed, &self.listed) {
            tracing::warn!(why, "could not store which namespaces are listed; trying again");
        }
        self.listed = failed;
    }

    /// This workload is left out, and why.
    pub fn unreadable(&mut self, id: &WorkloadId, why: String) {
        if self.unreadable.get(id) != Some(&why) {
            tracing::warn!(workload = %id.spoken(), why, "a workload cannot be read and is left out");
            self.unreadable.insert(id.clone(), why);
        }
    }

    /// It can be read, or is gone.
    pub fn readable(&mut self, id: &WorkloadId) {
        self.unreadable.remove(id);
    }

    /// All of them, a sentence each.
    pub fn words(&self) -> impl Iterator<Item = String> {
        let baselines = self.baselines.iter().map(|why| format!("cannot write first records: {why}"));
        let listed = self.listed.iter().map(|why| format!("cannot store which namespaces are listed: {why}"));
        let unreadable = self.unreadable.iter().map(|(id, why)| format!("{} cannot be read: {why}", id.spoken()));
        self.watch.iter().cloned().chain(baselines).chain(listed).chain(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_lasts_until_its_own_cause_is_gone() {
        let web = WorkloadId::deployment("shop", "web");
        let mut troubles = Troubles::default();
        troubles.baselines_written(Some("failed to write: forbidden".into()));
        troubles.unreadable(&web, "image: \"WEB\" is not an image".into());
        troubles.watch_works();
        assert_eq!(troubles.words().count(), 2);
        troubles.baselines_written(None);
        troubles.readable(&web);
        assert_eq!(troubles.words().next(), None);
    }
}
