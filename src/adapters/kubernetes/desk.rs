//! Pipelines and Repos as a person comes to them, with rights of their own (decision 21), or a request with ours: all of them, one of
//! them, and a mark on one. A mark is an annotation, so the machine alone writes status and what a person says survives a restart of allclear.
//!
//! Not for what a mark means; that is `pipeline::ask`'s.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::crd;
use super::crd::repo::Installation;
use super::objects::{GROUP, Kind, PipelineKind, RepoKind, of};
use apiserver::{Answer, Api, Clients, Collection, Resource};
use kernel::id::{ObjectId, PipelineId, RepoId};
use kernel::unreadable::Unreadable;
use objects::kept::{Identity, Kept};
use objects::pipeline::callers::{self, Called};
use objects::pipeline::spec::Object;
use objects::ports::pipeline::Marks;
use objects::ports::repo::Pokes;
use purge::ports::PortError;

/// Answers a ticket with yes.
pub const APPROVE: &str = "allclear.dev/approve";
pub const APPROVED_BY: &str = "allclear.dev/approved-by";
/// Opens the time and verdict gates of a ticket, too.
pub const OVERRIDE: &str = "allclear.dev/override";
/// Names what a person chooses for an environment, as `prod/1.4.2`; it counts with a yes to its ticket.
pub const PROMOTE: &str = "allclear.dev/promote";
/// Lets a Repo that is being deleted go with nothing destroyed: its UID.
pub const KEEP: &str = "allclear.dev/keep";
/// Asks to look now.
pub const REQUESTED_AT: &str = "allclear.dev/requested-at";
/// What a purge that is asked for so is about.
pub const REQUESTED_PATHS: &str = "allclear.dev/requested-paths";
/// Has purges tried now that CloudFront refused.
pub const RETRY_AT: &str = "allclear.dev/retry-at";
/// Asks for webhook deliveries again: the time, and their ids.
pub const RESEND: &str = "allclear.dev/resend";
/// Nothing new starts, for this reason.
pub const SUSPEND: &str = "allclear.dev/suspend";

/// Our identity at the API server
/// (<https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/self-subject-review-v1/>).
const REVIEWS: Resource = Resource::new("authentication.k8s.io", "v1", "selfsubjectreviews");

/// Pods, whose logs a person reads.
const PODS: Resource = Resource::new("", "v1", "pods");

/// Where objects of one kind of ours are read and marked.
pub struct Desk<K = PipelineKind> {
    api: Api,
    groups: Vec<String>,
    kind: K,
}

/// An object, and the API group that it is in.
#[derive(Clone, Debug)]
pub struct Found<T = Object> {
    pub group: String,
    pub object: T,
}

/// All objects that were asked for.
#[derive(Debug)]
pub struct Listing<T: Kept = Object> {
    /// By name. Of two objects of one name, the one of the earlier group.
    pub found: Vec<Found<T>>,
    /// Those that cannot be read, and why.
    pub unreadable: Vec<(T::Id, String)>,
}

impl<T: Kept> Default for Listing<T> {
    fn default() -> Self {
        Self { found: Vec::new(), unreadable: Vec::new() }
    }
}

/// What became of a mark.
#[derive(Debug)]
pub enum Marked<T = Object> {
    /// It is on the object, which is so now.
    Done(Box<Found<T>>),
    /// The object changed since it was read: nothing was written.
    Changed,
    /// The object is not there any more.
    Gone,
}

enum Patched {
    Done(Answer),
    Changed,
    Gone,
}

/// One change of an annotation; `None` removes it.
pub type Mark<'a> = (&'a str, Option<&'a str>);

impl Desk {
    /// Pipelines of these groups. `confined`: as in [`super::objects::Pipelines::confined`]. Nothing is asked for yet.
    pub fn new(clients: &Clients, groups: &[String], confined: bool) -> Self {
        let kind = PipelineKind::new(confined);
        Self { api: Api::new(clients.request.clone()), groups: groups.to_vec(), kind }
    }
}

impl Desk<RepoKind> {
    /// Repos. Nothing is asked for yet.
    pub fn of_repos(clients: &Clients, installation: Installation) -> Self {
        let kind = RepoKind { installation };
        Self { api: Api::new(clients.request.clone()), groups: vec![GROUP.to_owned()], kind }
    }
}

impl<K: Kind> Desk<K> {
    /// All objects of a namespace, or of all; `None` if the cluster does not have the kind.
    ///
    /// # Errors
    /// In words.
    pub async fn all(&self, namespace: Option<&str>) -> Result<Option<Listing<K::Object>>, PortError> {
        let (mut listing, mut served) = (Listing::default(), false);
        for group in &self.groups {
            let of = of::<K>(group, namespace);
            match self.api.each(&of, text, |json| self.put(group, &json, &mut listing)).await {
                // Rights are judged first: who may not list them learns only elsewhere that there are none.
                Err(failed) if matches!(failed.status(), Some(403 | 404)) => {
                    if self.is_served(&of).await? {
                        return Err(failed.error);
                    }
                }
                Err(failed) => return Err(failed.error),
                Ok(Some(why)) => return Err(PortError::lasting(of.attempt("list").to_string(), why)),
                Ok(None) => served = true,
            }
        }
        listing.found.sort_by(|a, b| a.object.id().cmp(b.object.id()));
        Ok(served.then_some(listing))
    }

    /// Reads one of a list. One that cannot be read is named, and hides no other.
    fn put(&self, group: &str, json: &str, into: &mut Listing<K::Object>) {
        match self.kind.read(json) {
            Err(why) => into.unreadable.extend(named::<K>(json).map(|id| (id, why.to_string()))),
            Ok(object) if into.found.iter().any(|known| known.object.id() == object.id()) => {}
            Ok(object) => into.found.push(Found { group: group.to_owned(), object }),
        }
    }

    /// One object; `None` if there is none of this name.
    ///
    /// # Errors
    /// In words, also where the cluster does not have the kind.
    pub async fn one(&self, id: &<K::Object as Kept>::Id) -> Result<Option<Found<K::Object>>, PortError> {
        let read = self.first(id, |json| self.kind.read(json)).await?;
        Ok(read.map(|(group, object)| Found { group: group.to_owned(), object }))
    }

    /// What `read` makes of the first object of this name, and the group that it is in.
    async fn first<T>(
        &self,
        id: &<K::Object as Kept>::Id,
        read: impl Fn(&str) -> Result<T, Unreadable>,
    ) -> Result<Option<(&str, T)>, PortError> {
        let mut served = false;
        for group in &self.groups {
            let of = of::<K>(group, Some(id.namespace()));
            match self.api.get(&of, K::name(id)).await? {
                Some(answer) => {
                    return answer.read(read).map(|read| Some((group.as_str(), read)));
                }
                None => served |= self.is_served(&of).await?,
            }
        }
        if served {
            return Ok(None);
        }
        let attempted = of::<K>(self.groups.first().map_or("", String::as_str), Some(id.namespace()));
        Err(PortError::lasting(attempted.attempt_one("get", K::name(id)).to_string(), K::ABSENT))
    }

    async fn is_served(&self, of: &Collection) -> Result<bool, PortError> {
        let kinds = self.api.kinds(&of.resource.group, &of.resource.version).await?;
        Ok(kinds.is_some_and(|all| all.iter().any(|one| *one.plural == of.resource.plural)))
    }

    /// Puts marks on an object; `exact`: only if it is still as it was read.
    ///
    /// # Errors
    /// In words.
    pub async fn mark(
        &self,
        found: &Found<K::Object>,
        marks: &[Mark<'_>],
        exact: bool,
    ) -> Result<Marked<K::Object>, PortError> {
        match self.patch(&found.group, &found.object, marks, exact).await? {
            Patched::Done(answer) => {
                let unreadable = |why| {
                    let why = format!("it is done, and the answer cannot be read: {why}");
                    PortError::lasting(answer.attempted.as_str(), why)
                };
                let object = answer.object(|json| self.kind.read(json)).map_err(unreadable)?;
                Ok(Marked::Done(Box::new(Found { group: found.group.clone(), object })))
            }
            Patched::Changed => Ok(Marked::Changed),
            Patched::Gone => Ok(Marked::Gone),
        }
    }

    async fn patch(
        &self,
        group: &str,
        object: &K::Object,
        marks: &[Mark<'_>],
        exact: bool,
    ) -> Result<Patched, PortError> {
        let (namespace, name) = (object.id().namespace(), K::name(object.id()));
        let Identity { uid, version } = object.identity();
        let annotations: serde_json::Map<String, Value> =
            marks.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let mut metadata = json!({"annotations": annotations, "uid": uid});
        if exact && let Some(fields) = metadata.as_object_mut() {
            fields.insert("resourceVersion".to_owned(), json!(version));
        }
        let of = of::<K>(group, Some(namespace));
        match self.api.merge(&of, name, &json!({"metadata": metadata})).await {
            Ok(answer) => Ok(Patched::Done(answer)),
            Err(failed) if failed.status() == Some(404) => Ok(Patched::Gone),
            // Another version.
            Err(failed) if failed.status() == Some(409) => Ok(Patched::Changed),
            // A patch that names another object of this name would change its UID, which is wrong for good.
            Err(failed) if failed.status() == Some(422) && self.is_another(&of, object).await? => Ok(Patched::Changed),
            Err(failed) => Err(failed.error),
        }
    }

    /// Whether the object of this name is not the one that was found.
    async fn is_another(&self, of: &Collection, object: &K::Object) -> Result<bool, PortError> {
        #[derive(Deserialize)]
        struct Named {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            uid: String,
        }
        let Some(answer) = self.api.get(of, K::name(object.id())).await? else { return Ok(true) };
        Ok(answer.json::<Named>()?.metadata.uid != object.identity().uid)
    }

    /// The log of a container of the newest pod of this Job, from its beginning; `None` if no pod of it is there any more.
    ///
    /// # Errors
    /// In words.
    pub async fn log(&self, namespace: &str, job: &str, container: &str) -> Result<Option<String>, PortError> {
        let pods = Collection::of(PODS, namespace);
        let labels = format!("job-name={job}");
        let found = self.api.all(&pods, Some(&labels), pod_name).await?;
        let Some((_, pod)) = found.into_iter().max() else { return Ok(None) };
        Ok(Some(self.api.log(&pods, &pod, container).await?.text()))
    }

    /// Our user name at the API server.
    ///
    /// # Errors
    /// In words.
    pub async fn who(&self) -> Result<String, PortError> {
        #[derive(Deserialize)]
        struct Review {
            status: Status,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Status {
            user_info: User,
        }
        #[derive(Deserialize)]
        struct User {
            username: String,
        }
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let review: Review = self.api.create(&Collection::everywhere(REVIEWS), None, &body).await?.json()?;
        Ok(review.status.user_info.username)
    }
}

/// With our own rights: what others ask for by a request.
#[async_trait]
impl Marks for Desk {
    async fn read(&self, id: &PipelineId) -> Result<Option<Called>, PortError> {
        let called = self.first(id, |json| crd::called(json).map_err(Unreadable::because)).await?;
        Ok(called.map(|(group, called)| Called {
            group: group.to_owned(),
            object: self.kind.confine(called.object.clone()),
            ..called
        }))
    }

    async fn mark(&self, called: &Called, mark: &callers::Mark) -> Result<bool, PortError> {
        let at;
        let marks = match mark {
            callers::Mark::Look(at_ms) => {
                at = requested_at(*at_ms);
                vec![(REQUESTED_AT, Some(at.as_str()))]
            }
            callers::Mark::Yes { ticket, by } => {
                vec![(APPROVE, Some(ticket.as_str())), (APPROVED_BY, Some(by.as_str()))]
            }
        };
        match self.patch(&called.group, &called.object, &marks, false).await {
            Ok(Patched::Done(_)) => Ok(true),
            Ok(Patched::Changed | Patched::Gone) => Ok(false),
            Err(error) if error.denied => {
                let cause = format!("{}; deploy/components/hooks gives the right to it", error.cause);
                Err(PortError { cause, ..error })
            }
            Err(error) => Err(error),
        }
    }
}

/// How the time of a wish to look now is written: as RFC 3339 has it, to the millisecond.
pub fn requested_at(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}

/// The text of one of a list: a decoder has no kind to read it with.
#[expect(clippy::unnecessary_wraps, reason = "a decoder may fail")]
fn text(json: &str) -> Result<String, Unreadable> {
    Ok(json.to_owned())
}

/// When a pod was made, and its name.
fn pod_name(json: &str) -> Result<(String, String), Unreadable> {
    #[derive(Deserialize)]
    struct Pod {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        name: String,
        #[serde(default)]
        creation_timestamp: String,
    }
    let Pod { metadata } = serde_json::from_str(json)?;
    Ok((metadata.creation_timestamp, metadata.name))
}

/// The name of an object that cannot be read otherwise.
fn named<K: Kind>(json: &str) -> Option<<K::Object as Kept>::Id> {
    #[derive(Deserialize)]
    struct Named {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        namespace: String,
        name: String,
    }
    let Named { metadata: Metadata { namespace, name } } = serde_json::from_str(json).ok()?;
    Some(K::id(namespace, name))
}

#[async_trait]
impl Pokes for Desk<RepoKind> {
    async fn poke(&self, repo: &RepoId, at_ms: i64) -> Result<bool, PortError> {
        let Some(found) = self.one(repo).await? else { return Ok(false) };
        let at = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH).to_string();
        Ok(!matches!(self.mark(&found, &[(REQUESTED_AT, Some(&at))], false).await?, Marked::Gone | Marked::Changed))
    }
}
