//! The Events that upstream's users know.

use super::*;
use crate::apps::app::{LeafId, LeafKind};
use crate::pipeline::past::news;
use crate::pipeline::remark::{ended, remarks};
use crate::pipeline::status::Status;
use kernel::remark::Remark;

/// A reason and a message; a warning begins with `!`.
pub(super) type Said = String;

impl Story {
    pub(super) fn remark(&mut self, before: &Status) {
        let said = |Remark { reason, is_warning, message, annotations }: Remark| {
            let facts: String = annotations.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            format!("{}{reason}: {message}{facts}", if is_warning { "!" } else { "" })
        };
        self.remarks.extend(remarks(&self.object, before).into_iter().map(said));
        self.past.extend(news(&self.object, before, self.machine.own.wall_ms(self.now)));
    }

    /// What was remarked since it was asked last, once everything is written.
    fn remarked(&mut self) -> Vec<String> {
        self.pass(Duration::from_secs(3));
        std::mem::take(&mut self.remarks)
    }
}

const UPDATED: &str = "Updated: Updated pipeline shop/web";

#[test]
fn a_promotion_is_remarked_once_with_upstreams_words_and_annotations() {
    let mut story = Story::new(spec(false));
    assert_eq!(story.remarked(), [UPDATED]);
    story.show("staging", at("2"));
    let promote = "Promote: Promote pipeline shop/web to prod with version 2 environment=prod version=2";
    let of_promote =
        |said: Vec<String>| said.into_iter().filter(|said| said.starts_with("Promote")).collect::<Vec<_>>();
    assert_eq!(of_promote(story.remarked()), [promote]);
    story.show("prod-a", at("2"));
    story.show("prod-b", at("2"));
    assert_eq!(of_promote(story.remarked()), Vec::<String>::new());
    assert_eq!(story.phase(), Some(Phase::Completed));
}

#[test]
fn a_promotion_by_pull_request_is_no_promote() {
    let mut story = Story::new(by_request());
    story.remarked();
    story.show("staging", at("2"));
    assert!(story.remarked().iter().all(|said| said == UPDATED));
}

#[test]
fn what_cannot_be_read_is_remarked_once_for_each_reason() {
    let mut story = Story::new(spec(false));
    story.remarked();
    story.show("prod-a", Sight::Unknown("HTTP 403: deployments is forbidden".to_owned()));
    let lost = "!GetAppError: Failed to get application object prod-a/web for pipeline shop/web: HTTP 403: deployments is forbidden";
    assert_eq!(story.remarked(), [lost, UPDATED]);
    story.show("prod-b", Sight::Absent);
    let gone =
        "!GetAppError: Failed to get application object prod-b/web for pipeline shop/web: Deployment \"web\" not found";
    assert_eq!(story.remarked(), [gone]);
    story.show("prod-a", Sight::Unknown("HTTP 401".to_owned()));
    assert_eq!(
        story.remarked(),
        ["!GetAppError: Failed to get application object prod-a/web for pipeline shop/web: HTTP 401"]
    );
    story.show("prod-a", unready("1"));
    story.show("prod-b", unready("1"));
    assert_eq!(story.remarked(), [UPDATED], "what is not ready was read");
}

#[test]
fn a_cluster_that_cannot_be_read_is_remarked_once_for_all_its_targets() {
    let leaf = LeafId { kind: LeafKind::GitopsCluster, namespace: "fleet".to_owned(), name: "eu-1".to_owned() };
    let mut spec = spec(false);
    for target in &mut spec.environments[1].targets {
        let (app, namespace, name) = (target.app.clone(), target.namespace.clone(), target.name.clone());
        *target = TargetKey::new(ClusterKey::Leaf(leaf.clone()), app, namespace, name);
    }
    let targets = spec.environments[1].targets.clone();
    let mut story = Story::new(spec);
    let see = |story: &mut Story, sights: [Sight; 2]| {
        story.feed(Event::Reported(targets.iter().cloned().zip(sights).collect()));
        story.remarked()
    };
    see(&mut story, [at("1"), at("1")]);
    let why = "GitopsCluster.gitops.weave.works \"eu-1\" not found";
    let lost = format!("!GetClusterError: Failed to get cluster fleet/eu-1 for pipeline shop/web: {why}");
    let unknown = || Sight::Unknown(why.to_owned());
    let not_synced = || Sight::Unknown(crate::apps::leaf::NOT_SYNCED.to_owned());
    let quiet = see(&mut story, [not_synced(), not_synced()]);
    assert_eq!(quiet, [UPDATED], "what begins is no failure");
    see(&mut story, [at("1"), at("1")]);
    assert_eq!(see(&mut story, [unknown(), unknown()]), [lost.as_str(), UPDATED]);
    let gone = "!GetAppError: Failed to get application object fleet/eu-1:prod-a/web for pipeline shop/web: Deployment \"web\" not found";
    assert_eq!(see(&mut story, [Sight::Absent, at("1")]), [gone]);
}

#[test]
fn a_thousand_targets_make_no_flood() {
    let mut spec = spec(false);
    let namespaces: Vec<String> = (0..50).map(|number| format!("prod-{number}")).collect();
    spec.environments[1].targets = namespaces.iter().map(|namespace| target(namespace)).collect();
    let targets = spec.environments[1].targets.clone();
    let mut story = Story::new(spec);
    story.remarked();
    story.feed(Event::Reported(targets.into_iter().map(|target| (target, Sight::Absent)).collect()));
    assert_eq!(story.remarked().len(), 20);
}

#[test]
fn what_has_ended_is_counted_once() {
    let mut story = Story::new(spec(false));
    let quiet = story.object.status.clone();
    story.show("staging", at("2"));
    story.show("prod-a", at("2"));
    story.show("prod-b", at("2"));
    story.remarked();
    let after = story.object.status.clone();
    let outcomes: Vec<Phase> = ended(&quiet, &after).map(|ended| ended.outcome).collect();
    assert_eq!(outcomes, [Phase::Completed]);
    assert_eq!(ended(&after, &after).count(), 0);
}
