//! A promotion as a pull request: what is asked of a forge, and what became of it.
//!
//! Not for how git and the forges do it; that is the crate `forge`.

use serde::{Deserialize, Serialize};

use crate::asked::Topic;
use crate::form::named;
use crate::pipeline::options::{
    InvalidOption, Lacks, MergeMethod, RequestOptions, Reviewer, TEAM, Template, Value, refused,
};
use crate::pipeline::set;
use kernel::id::{Environment, PipelineId, PromotionSeq, Revision, digest};

named! {
    /// Where pull requests live.
    pub enum ForgeKind("forge") {
        /// GitHub, and GitHub Enterprise Server.
        GitHub = "github",
        GitLab = "gitlab",
        /// Bitbucket Server and Data Center.
        BitbucketServer = "bitbucket-server",
        /// Bitbucket Cloud, at bitbucket.org alone.
        BitbucketCloud = "bitbucket-cloud",
        Gitea = "gitea",
    }
}

/// Where a pull request is, as the spec said when it was made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repository {
    /// The kind of forge, whose API is spoken.
    #[serde(rename = "type")]
    pub forge: ForgeKind,
    /// The address of the repository, by HTTPS or SSH.
    pub url: String,
    /// The branch that the request goes to.
    #[serde(rename = "baseBranch")]
    pub base: String,
    /// The folder with the markers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The name of the Secret.
    // With the credentials, in the Pipeline's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

impl ForgeKind {
    /// Whether a forge of this kind can do all that is wanted of a request.
    ///
    /// # Errors
    /// Names the field, and why it cannot be.
    pub fn can(self, options: &RequestOptions) -> Result<(), InvalidOption> {
        let has_teams = options.reviewers.iter().any(|one| matches!(one, Reviewer::Team(_)));
        if has_teams && !matches!(self, Self::GitHub | Self::Gitea) {
            return refused(format!("reviewers: {} asks users only, no {TEAM}NAME", self.name()));
        }
        let wanted = [
            ("labels", !options.labels.is_empty()),
            ("draft", options.draft),
            ("autoMerge", options.auto_merge.is_some()),
        ];
        let (has_not, why): (&[&str], _) = match self {
            Self::GitHub | Self::GitLab | Self::Gitea => (&[], ""),
            Self::BitbucketServer => (&["labels", "draft", "autoMerge"], "not all of its versions have that"),
            Self::BitbucketCloud => (&["labels", "autoMerge"], "its API has no such thing"),
        };
        let is_too_much = |(field, is_wanted): &(&str, bool)| *is_wanted && has_not.contains(field);
        if let Some((field, _)) = wanted.into_iter().find(is_too_much) {
            return refused(format!("{field}: not for {}: {why}", self.name()));
        }
        let is_account = |one: &Reviewer| matches!(one, Reviewer::User(name) if is_uuid(name));
        if self == Self::BitbucketCloud
            && let Some(name) = options.reviewers.iter().find(|one| !is_account(one))
        {
            let form = "that has the form 504c3b62-8120-4f0c-a7bc-87800b9d6f70, without braces";
            return refused(format!("reviewers: {} knows an account by its UUID, not as {name}: {form}", self.name()));
        }
        if self == Self::GitLab && options.auto_merge == Some(MergeMethod::Rebase) {
            return refused(format!("autoMerge: {} merges as its project says; write Merge or Squash", self.name()));
        }
        options.check()
    }
}

/// Five groups of hex digits ([RFC 9562, 4](https://www.rfc-editor.org/rfc/rfc9562#section-4)).
fn is_uuid(text: &str) -> bool {
    text.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && text.bytes().all(|one| one == b'-' || one.is_ascii_hexdigit())
}

impl Repository {
    /// Whether requests of both are the same ones: markers and credentials may differ.
    pub fn is_place_of(&self, other: &Self) -> bool {
        (self.forge, &self.url, &self.base) == (other.forge, &other.url, &other.base)
    }
}

/// One promotion, to be proposed. The same order always makes the same commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    /// The promotion's id, `H(UID, environment, seq)`: in the commit's trailer and in the request's body.
    pub id: String,
    pub pipeline: PipelineId,
    pub environment: Environment,
    /// The promotion's number: a branch with a higher one is left alone.
    pub seq: PromotionSeq,
    /// The present revision of the environment, if all its targets have the same.
    pub from: Option<Revision>,
    /// The revision that the environment is to have.
    pub revision: Revision,
    /// The apps that it is a set of; none where there is one app.
    pub apps: Vec<String>,
    pub repository: Repository,
    /// When the promotion was started, in seconds since the Unix epoch; the commit's date.
    pub started_at: i64,
    /// The approver, in words, where a person had to approve.
    pub approved_by: Option<String>,
    /// Who chose it, and how it relates to what was there, where a person did.
    pub chosen: Option<String>,
    /// What else is wanted of the request.
    pub options: RequestOptions,
    /// What its open request is known to lack of that.
    pub lacks: Lacks,
    /// A person allowed to replace a branch that holds commits of others (ticket `Overwrite`).
    pub overwrite: bool,
}

impl Order {
    /// What markers are set to, each with the name that markers have for it: `shop:web`, or `shop:web/api` of an app of a set. A set
    /// that cannot be read as one is no app's.
    pub fn marked(&self) -> Vec<(PipelineId, Revision)> {
        if self.apps.is_empty() {
            return vec![(self.pipeline.clone(), self.revision.clone())];
        }
        let PipelineId { namespace, name } = &self.pipeline;
        let of = |app: &String| PipelineId { namespace: namespace.clone(), name: format!("{name}/{app}") };
        let parts = set::parts(&self.apps, &self.revision).unwrap_or_default();
        parts.into_iter().map(|(app, revision)| (of(app), revision)).collect()
    }

    /// The topic of an answer to it.
    pub fn topic(&self) -> Topic {
        Topic::of(&(self.seq, &self.repository))
    }

    /// A template with what this promotes. `shown` makes a value harmless where it goes.
    pub fn fill(&self, template: &Template, shown: impl Fn(&str) -> String) -> String {
        template.filled(|value| match value {
            Value::Namespace => shown(&self.pipeline.namespace),
            Value::Pipeline => shown(&self.pipeline.name),
            Value::Environment => shown(&self.environment.0),
            Value::Revision => shown(&self.revision.0),
            Value::From => self.from.as_ref().map_or_else(|| "nothing".to_owned(), |from| shown(&from.0)),
        })
    }

    /// The branch of its environment's promotions: `promotion-shop-web-prod`. Where a name may be read in two ways, as of `a/x-y` and
    /// `a-x/y`, a hash tells them apart.
    pub fn branch(&self) -> String {
        let PipelineId { namespace, name } = &self.pipeline;
        let environment = &self.environment.0;
        let branch = format!("promotion-{namespace}-{name}-{environment}");
        if !namespace.contains('-') && !name.contains('-') {
            return branch;
        }
        let hash = digest("branch", [namespace.as_str(), name, environment]);
        format!("{branch}-{}", hash.chars().take(8).collect::<String>())
    }
}

/// A pull request that exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// For people, to open in a browser.
    pub url: String,
    /// The forge's number of it.
    pub number: u64,
    /// The commit at its head, 40 hex digits, where known.
    pub commit: Option<String>,
    /// What the forge would not do of its options.
    pub lacks: Lacks,
}

/// The outcome of an order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Proposed {
    /// The request is open, and says what was ordered.
    Open(Request),
    /// The base branch has the revision at every marker already.
    NothingToChange,
    /// This promotion's request was closed by a person.
    Closed(Request),
    /// This promotion's request was merged.
    Merged(Request),
    /// The branch holds a promotion with this higher number: nothing was changed.
    Outdated(PromotionSeq),
    /// The branch holds commits that are not ours; a person must allow to replace them. What they are, in words.
    Foreign(String),
}

impl Proposed {
    /// One word, for counts.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Open(_) => "open",
            Self::NothingToChange => "nothing_to_change",
            Self::Closed(_) => "closed",
            Self::Merged(_) => "merged",
            Self::Outdated(_) => "outdated",
            Self::Foreign(_) => "foreign",
        }
    }
}

/// How an open request stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestState {
    /// It waits for people.
    Open,
    /// The same, and what it lacked was tried again: what it lacks now.
    Lacks(Lacks),
    /// It waits for people, and it cannot be made anew though its base has changed. Why, in words.
    Held(String),
    Merged,
    /// It was closed without a merge, or is gone.
    Closed,
}

impl RequestState {
    /// One word, for counts.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Lacks(_) => "lacks",
            Self::Held(_) => "held",
            Self::Merged => "merged",
            Self::Closed => "closed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::proposal::ForgeKind;

    fn branch(namespace: &str, name: &str, environment: &str) -> String {
        let repository =
            Repository { forge: ForgeKind::GitHub, url: String::new(), base: String::new(), path: None, secret: None };
        let order = Order {
            id: String::new(),
            pipeline: PipelineId::new(namespace, name),
            environment: Environment(environment.to_owned()),
            seq: PromotionSeq(1),
            from: None,
            revision: Revision("1".to_owned()),
            apps: Vec::new(),
            repository,
            started_at: 0,
            approved_by: None,
            chosen: None,
            options: RequestOptions::default(),
            lacks: Lacks::new(),
            overwrite: false,
        };
        order.branch()
    }

    #[test]
    fn what_a_forge_cannot_do_is_refused_by_its_field() {
        const UUID: &str = "504c3b62-8120-4F0C-a7bc-87800b9d6f70";
        let user = |name: &str| vec![Reviewer::parse(name).unwrap()];
        let team = || user("team:sre");
        let none = RequestOptions::default;
        let merged = |how| RequestOptions { auto_merge: Some(how), ..none() };
        for (forge, options, words) in [
            (ForgeKind::BitbucketServer, RequestOptions { labels: vec!["a".to_owned()], ..none() }, "labels"),
            (ForgeKind::BitbucketServer, RequestOptions { draft: true, ..none() }, "draft"),
            (ForgeKind::BitbucketServer, merged(MergeMethod::Merge), "autoMerge"),
            (ForgeKind::BitbucketServer, RequestOptions { reviewers: team(), ..none() }, "users only"),
            (ForgeKind::GitLab, RequestOptions { reviewers: team(), ..none() }, "users only"),
            (ForgeKind::BitbucketCloud, RequestOptions { reviewers: team(), ..none() }, "users only"),
            (ForgeKind::BitbucketCloud, RequestOptions { reviewers: user("ann"), ..none() }, "not as ann"),
            (
                ForgeKind::BitbucketCloud,
                RequestOptions { reviewers: user(&UUID.replace('5', "g")), ..none() },
                "its UUID",
            ),
            (
                ForgeKind::BitbucketCloud,
                RequestOptions { reviewers: user(&UUID.replace('-', "")), ..none() },
                "its UUID",
            ),
            (ForgeKind::BitbucketCloud, RequestOptions { labels: vec!["a".to_owned()], ..none() }, "labels"),
            (ForgeKind::BitbucketCloud, merged(MergeMethod::Squash), "autoMerge"),
            (ForgeKind::GitLab, merged(MergeMethod::Rebase), "Merge or Squash"),
        ] {
            let refused = forge.can(&options).expect_err(words).to_string();
            assert!(refused.contains(words), "{refused}");
        }
        for forge in ForgeKind::ALL {
            let name = if forge == ForgeKind::BitbucketCloud { UUID } else { "ann" };
            assert_eq!(forge.can(&RequestOptions { reviewers: user(name), ..none() }), Ok(()));
        }
        assert_eq!(ForgeKind::BitbucketCloud.can(&RequestOptions { draft: true, ..none() }), Ok(()));
        let all =
            RequestOptions { labels: vec!["promotion".to_owned()], reviewers: team(), ..merged(MergeMethod::Squash) };
        assert_eq!((ForgeKind::GitHub.can(&all), ForgeKind::Gitea.can(&all)), (Ok(()), Ok(())));
    }

    #[test]
    fn no_two_environments_have_one_branch() {
        assert_eq!(branch("shop", "web", "prod"), "promotion-shop-web-prod");
        let branches = [("a", "x-y", "p"), ("a-x", "y", "p"), ("a", "x", "y-p")];
        let names = branches.map(|(namespace, name, environment)| branch(namespace, name, environment));
        let different: std::collections::BTreeSet<&String> = names.iter().collect();
        assert!(different.len() == 3 && names.iter().all(|name| name.starts_with("promotion-a-x-y-p")), "{names:?}");
    }
}
