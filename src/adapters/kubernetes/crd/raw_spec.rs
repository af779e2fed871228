//! What a Pipeline asks for, as people write it. The CRD is made from these types, so their comments are what `kubectl explain`
//! says. Fields of `pipelines.weave.works` keep their names and places.
//!
//! Not for what they mean; that is `read`.

use objects::apps::app::ClusterRef;
use objects::pipeline::options::MergeMethod;
use objects::pipeline::spec::Advance;
use objects::pipeline::status::Cause;
use serde::Deserialize;

#[cfg(test)]
use schemars::JsonSchema;

/// What a Pipeline asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PipelineSpec {
    /// The app: one name in all targets.
    pub app_ref: Option<AppRef>,
    /// Several apps that are promoted together, as one set of revisions, in place of appRef.
    #[cfg_attr(test, schemars(length(min = 2, max = 10)))]
    pub apps: Option<Vec<App>>,
    /// In order. Revisions appear in the first and are promoted from each to the next, or to those that name it in after.
    #[cfg_attr(test, schemars(length(min = 1, max = 20)))]
    pub environments: Vec<Environment>,
    /// How a revision gets into an environment that does not say so itself. Without one, environments are observed only.
    pub promotion: Option<Promotion>,
    /// What a revision must have passed before it is promoted into an environment. Latest: all environments before it. Stepwise:
    /// those just before it.
    #[serde(default)]
    pub advance: Advance,
    /// No new promotion starts.
    #[serde(default)]
    pub suspend: bool,
}

/// An app of a set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct App {
    /// Its name in the set: api, as in api=1.2,web=3.4.
    #[cfg_attr(test, schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")))]
    pub name: String,
    /// The app: one name in all targets.
    pub app_ref: AppRef,
}

/// The app that is promoted: an object of this kind and name in each target.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct AppRef {
    /// Its group and version, as in a manifest: apps/v1.
    #[cfg_attr(test, schemars(length(min = 1, max = 317)))]
    pub api_version: String,
    /// Its kind, for example Deployment, StatefulSet, DaemonSet, HelmRelease, Kustomization, Application, Rollout or Terraform.
    #[cfg_attr(test, schemars(length(min = 1, max = 63)))]
    pub kind: String,
    /// The name of the object in each target.
    #[cfg_attr(test, schemars(length(min = 1, max = 253)))]
    pub name: String,
    /// The container whose image is the revision. Not needed where there is one, or one named like the app.
    #[cfg_attr(test, schemars(length(max = 63)))]
    pub container: Option<String>,
    /// Where its revision is, as a JSON pointer. Needed for kinds that are not known.
    #[cfg_attr(test, schemars(length(max = 512), regex(pattern = r"^(/([^~/]|~[01])*)+$")))]
    pub revision_at: Option<String>,
    /// JSON pointer to what says that the app is ready. Without one: the condition Ready, for kinds that allclear does not know.
    #[cfg_attr(test, schemars(length(max = 512), regex(pattern = r"^(/([^~/]|~[01])*)+$")))]
    pub ready_at: Option<String>,
    /// What stands there if it is ready: True, unless given.
    #[cfg_attr(test, schemars(length(max = 253)))]
    pub ready_value: Option<String>,
}

/// One environment, and what promotes into it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Environment {
    /// Its name, which no other environment has.
    #[cfg_attr(test, schemars(length(min = 1, max = 63), regex(pattern = r"^[^\s/:]+$")))]
    pub name: String,
    /// The environments just before it, all of which a revision must have passed. Without it: the one before it in the list.
    #[cfg_attr(test, schemars(length(min = 1, max = 20)))]
    pub after: Option<Vec<String>>,
    /// Where the app is. The environment is settled when all targets are ready at one revision.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1, max = 50)))]
    pub targets: Vec<Target>,
    /// How a revision gets into this environment.
    pub promotion: Option<Promotion>,
    /// No new promotion into it starts.
    #[serde(default)]
    pub suspend: bool,
    /// What must hold before a promotion into it starts. The first environment has none.
    pub gates: Option<Gates>,
    /// It is done only when the CDN shows what these run.
    pub purged: Option<Purged>,
    /// A notice says once that a wait is longer than this: 1h unless given, from 1m to 30d.
    #[cfg_attr(test, schemars(length(max = 32)))]
    pub stalled_after: Option<String>,
    /// When it goes back by itself to what it had. Without it: never.
    pub rollback: Option<Rollback>,
}

/// When an environment goes back by itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Rollback {
    /// verdict: gates.verdict says no to what it has. stalled: it is not ready stalledAfter after it got that.
    #[cfg_attr(test, schemars(length(min = 1, max = 2)))]
    pub on: Vec<Cause>,
    /// For so long after it got a revision: 30m, up to 30d. With stalled longer than stalledAfter.
    #[cfg_attr(test, schemars(length(min = 1, max = 32)))]
    pub within: String,
}

/// Where the app is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Target {
    /// The namespace of the app in that cluster.
    #[cfg_attr(test, schemars(length(min = 1, max = 63)))]
    pub namespace: String,
    /// The cluster. Without one, this cluster.
    pub cluster_ref: Option<ClusterRef>,
    /// A title for people, such as the region.
    #[cfg_attr(test, schemars(length(max = 63)))]
    pub label: Option<String>,
}

/// How a revision gets into an environment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Promotion {
    /// A person must say yes.
    #[serde(default)]
    pub manual: bool,
    /// What brings a revision into the environment.
    pub strategy: Strategy,
}

/// What is done: a pull request, or a notification.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Strategy {
    /// Open a pull request that sets marked values to the revision.
    #[serde(rename = "pull-request")]
    pub pull_request: Option<PullRequest>,
    /// Send a notice to a program that deploys.
    pub notification: Option<Notification>,
    /// The Secret with the key hmac-key, by which requests to promote and to approve are signed.
    #[serde(rename = "secretRef")]
    pub secret_ref: Option<SecretRef>,
}

/// A pull request that sets the revision in a repository.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PullRequest {
    /// The forge. gitea is Forgejo, too.
    #[serde(rename = "type")]
    pub forge: Forge,
    /// The repository's address, as git clones it: https, or ssh://USER@HOST:PORT/PATH; then the forge's API is at https://HOST.
    #[cfg_attr(test, schemars(length(max = 1024), regex(pattern = "^(https|ssh)://")))]
    pub url: String,
    /// The branch that requests go to: main, unless given.
    #[cfg_attr(test, schemars(length(max = 255)))]
    pub base_branch: Option<String>,
    /// The Secret with username and password for git and token for the forge, or the keys of a GitHub App.
    pub secret_ref: Option<SecretRef>,
    /// Markers are looked for below this folder only.
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub path: Option<String>,
    /// Its labels. Not for bitbucket-server or -cloud.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 10), inner(length(min = 1, max = 50))))]
    pub labels: Vec<String>,
    /// Who is asked for a review: ann, or team:sre for github and gitea; for bitbucket-cloud an account's UUID without braces.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 10), inner(length(min = 1, max = 105))))]
    pub reviewers: Vec<String>,
    /// It is a draft until a person says that it is ready. Not for bitbucket-server.
    #[serde(default)]
    pub draft: bool,
    /// Its title, one line, and that of the commit. With {{ namespace }}, {{ pipeline }}, {{ environment }}, {{ revision }}, {{ from }}.
    #[cfg_attr(test, schemars(length(min = 1, max = 200)))]
    pub title: Option<String>,
    /// A text before what allclear says of the promotion, with the same values.
    #[cfg_attr(test, schemars(length(min = 1, max = 4000)))]
    pub body: Option<String>,
    /// The forge merges it by itself as soon as its own rules allow that: Merge, Squash or Rebase. Not for bitbucket-server or -cloud.
    pub auto_merge: Option<MergeMethod>,
}

/// Where pull requests live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Forge {
    #[default]
    #[serde(rename = "github")]
    GitHub,
    #[serde(rename = "gitlab")]
    GitLab,
    BitbucketServer,
    BitbucketCloud,
    Gitea,
    AzureDevops,
}

/// Tell a program: the notice promotion.started, and an Event.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Notification {}

/// A Secret in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct SecretRef {
    /// The name of the Secret, in the namespace of this object.
    #[cfg_attr(test, schemars(length(min = 1, max = 253)))]
    pub name: String,
}

/// What must hold before a promotion starts. All are judged together.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Gates {
    /// How long the environment before must have been at the revision, without a break: 30m, up to 30d.
    #[cfg_attr(test, schemars(length(max = 32)))]
    pub soak: Option<String>,
    /// How long it may be unready in between, as while a pod is replaced: 2m, unless given.
    #[cfg_attr(test, schemars(length(max = 32)))]
    pub soak_tolerates: Option<String>,
    /// It is in one of these parts of the week.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 20)))]
    pub windows: Vec<Window>,
    /// It is in none of these times.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 20)))]
    pub freezes: Vec<Freeze>,
    /// Another system says that the gate is open.
    pub verdict: Option<Verdict>,
    /// These objects are there and ready.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 20)))]
    pub needs: Vec<Need>,
}

/// A part of the week.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Window {
    /// On these days; on all of them if none is given. It belongs to the day on which it begins.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 7)))]
    pub days: Vec<Day>,
    /// When it opens, as 09:00.
    #[cfg_attr(test, schemars(regex(pattern = r"^([01][0-9]|2[0-3]):[0-5][0-9]$")))]
    pub from: String,
    /// To, as 17:30. Not later than from means on the next day.
    #[cfg_attr(test, schemars(regex(pattern = r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$")))]
    pub to: String,
    /// The IANA time zone: Europe/Berlin. UTC unless given.
    #[cfg_attr(test, schemars(length(max = 64)))]
    pub time_zone: Option<String>,
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

/// A time in which nothing starts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Freeze {
    /// When it begins, as 2026-12-20T00:00:00Z.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub from: String,
    /// When it ends: the first moment after it.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub to: String,
    /// Why it is, for people who wait.
    #[cfg_attr(test, schemars(length(max = 200)))]
    pub reason: Option<String>,
}

/// Another system that is asked for a verdict.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Verdict {
    /// The address that is asked, by POST.
    #[cfg_attr(test, schemars(length(max = 1024), regex(pattern = "^https://")))]
    pub url: String,
    /// The Secret whose key hmac-key signs the question.
    pub secret_ref: Option<SecretRef>,
    /// How long it may take to answer: 10s unless given, up to 1m.
    #[cfg_attr(test, schemars(length(max = 32)))]
    pub timeout: Option<String>,
}

/// An object that must be there and ready.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Need {
    /// Its group and version.
    #[cfg_attr(test, schemars(length(min = 1, max = 317)))]
    pub api_version: String,
    /// The kind of the needed object.
    #[cfg_attr(test, schemars(length(min = 1, max = 63)))]
    pub kind: String,
    /// The name of the needed object.
    #[cfg_attr(test, schemars(length(min = 1, max = 253)))]
    pub name: String,
    /// Its namespace: that of the object that names it, unless given.
    #[cfg_attr(test, schemars(length(max = 63)))]
    pub namespace: Option<String>,
    /// The cluster. Without one, this cluster.
    pub cluster_ref: Option<ClusterRef>,
}

/// Whose CDN must be purged.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Purged {
    /// Workloads in the environment's namespaces. A name alone is a Deployment's; others are statefulset/NAME or daemonset/NAME.
    #[cfg_attr(test, schemars(length(min = 1, max = 20), inner(length(min = 1, max = 265))))]
    pub workloads: Vec<String>,
    /// The allclear that purges for them. Without one, this one.
    #[cfg_attr(test, schemars(length(max = 1024), regex(pattern = "^https://")))]
    pub server: Option<String>,
    /// The Secret whose key token is sent to that server, which takes it from its http.fresh_token_file.
    pub secret_ref: Option<SecretRef>,
    /// What has to be known of the edge: purged, as CloudFront reports, or fresh, as a look by a marker has shown. Purged unless given.
    #[cfg_attr(test, schemars(regex(pattern = "^(purged|fresh)$")))]
    pub until: Option<String>,
}
