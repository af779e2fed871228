//! Pipelines as a person comes to them, with rights of their own (decision 21), or a request with ours: all of them, one of them, and a
//! mark on one. A mark is an annotation, so the machine alone writes status and what a person says survives a restart of allclear.
//!
//! Not for what a mark means; that is `pipeline::ask`'s.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Answer, Api, Clients, Collection, Resource};
use super::crd;
use super::objects::{PipelineKind, of};
use domain::id::PipelineId;
use domain::pipeline::callers::{self, Called};
use domain::pipeline::spec::Object;
use domain::ports::PortError;
use domain::ports::pipeline::Marks;

/// Answers a ticket with yes.
pub const APPROVE: &str = "allclear.dev/approve";
/// Who does.
pub const APPROVED_BY: &str = "allclear.dev/approved-by";
/// Opens the time and verdict gates of a ticket, too.
pub const OVERRIDE: &str = "allclear.dev/override";
/// Asks to look now.
pub const REQUESTED_AT: &str = "allclear.dev/requested-at";
/// Nothing new starts, for this reason.
pub const SUSPEND: &str = "allclear.dev/suspend";

/// Who the API server takes us for (<https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/self-subject-review-v1/>).
const REVIEWS: Resource = Resource::new("authentication.k8s.io", "v1", "selfsubjectreviews");

/// Where Pipelines are read and marked.
pub struct Desk {
    api: Api,
    groups: Vec<String>,
    confined: bool,
}

/// A Pipeline, and the API group that it is in.
#[derive(Clone, Debug)]
pub struct Found {
    /// The group.
    pub group: String,
    /// The object.
    pub object: Object,
}

/// All Pipelines that were asked for.
#[derive(Debug, Default)]
pub struct Listing {
    /// By name. Of two objects of one name, the one of the earlier group.
    pub found: Vec<Found>,
    /// Those that cannot be read, and why.
    pub unreadable: Vec<(PipelineId, String)>,
}

/// What became of a mark.
#[derive(Debug)]
pub enum Marked {
    /// It is on the object, which is so now.
    Done(Box<Found>),
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

enum Listed {
    Read(Box<Object>),
    Unreadable(PipelineId, String),
}

impl Desk {
    /// Pipelines of these groups. `confined`: as in [`super::objects::Pipelines::confined`]. Nothing is asked for yet.
    pub fn new(clients: &Clients, groups: &[String], confined: bool) -> Self {
        Self { api: Api::new(clients.request.clone()), groups: groups.to_vec(), confined }
    }

    /// All Pipelines of a namespace, or of all; `None` if the cluster does not have the kind.
    ///
    /// # Errors
    /// In words.
    pub async fn all(&self, namespace: Option<&str>) -> Result<Option<Listing>, PortError> {
        let mut listing = None;
        for group in &self.groups {
            let mut listed = Vec::new();
            match self.api.each(&of::<PipelineKind>(group, namespace), entry, |one| listed.push(one)).await {
                // Rights are judged first: who may not list them learns only elsewhere that there are none.
                Err(failed) if matches!(failed.status(), Some(403 | 404)) => {
                    if self.is_served(&of::<PipelineKind>(group, namespace)).await? {
                        return Err(failed.error);
                    }
                }
                Err(failed) => return Err(failed.error),
                Ok(Some(why)) => {
                    return Err(PortError::lasting(
                        of::<PipelineKind>(group, namespace).attempt("list").to_string(),
                        why,
                    ));
                }
                Ok(None) => self.sort(group, listed, listing.get_or_insert_default()),
            }
        }
        Ok(listing)
    }

    fn sort(&self, group: &str, listed: Vec<Listed>, into: &mut Listing) {
        for one in listed {
            match one {
                Listed::Unreadable(id, why) => into.unreadable.push((id, why)),
                Listed::Read(object) if into.found.iter().any(|known| known.object.id == object.id) => {}
                Listed::Read(object) => into.found.push(self.found(group, *object)),
            }
        }
        into.found.sort_by(|a, b| a.object.id.cmp(&b.object.id));
    }

    /// One Pipeline; `None` if there is none of this name.
    ///
    /// # Errors
    /// In words, also where the cluster does not have the kind.
    pub async fn one(&self, id: &PipelineId) -> Result<Option<Found>, PortError> {
        let read = self.first(id, crd::object).await?;
        Ok(read.map(|(group, object)| self.found(group, object)))
    }

    /// What `read` makes of the first object of this name, and the group that it is in.
    async fn first<T>(
        &self,
        id: &PipelineId,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<(&str, T)>, PortError> {
        let mut served = false;
        for group in &self.groups {
            let of = of::<PipelineKind>(group, Some(&id.namespace));
            match self.api.get(&of, &id.name).await? {
                Some(answer) => {
                    let unreadable =
                        |why| PortError::lasting(answer.attempted.as_str(), format!("it cannot be read: {why}"));
                    return answer.object(read).map(|read| Some((group.as_str(), read))).map_err(unreadable);
                }
                None => served |= self.is_served(&of).await?,
            }
        }
        if served {
            return Ok(None);
        }
        let attempted = of::<PipelineKind>(self.groups.first().map_or("", String::as_str), Some(&id.namespace));
        Err(PortError::lasting(attempted.attempt_one("get", &id.name).to_string(), ABSENT))
    }

    async fn is_served(&self, of: &Collection) -> Result<bool, PortError> {
        let kinds = self.api.kinds(&of.resource.group, &of.resource.version).await?;
        Ok(kinds.is_some_and(|all| all.iter().any(|one| *one.plural == of.resource.plural)))
    }

    fn found(&self, group: &str, object: Object) -> Found {
        let object = if self.confined { crd::confined(object) } else { object };
        Found { group: group.to_owned(), object }
    }

    /// Puts marks on a Pipeline; `exact`: only if it is still as it was read.
    ///
    /// # Errors
    /// In words.
    pub async fn mark(&self, found: &Found, marks: &[Mark<'_>], exact: bool) -> Result<Marked, PortError> {
        match self.patch(&found.group, &found.object, marks, exact).await? {
            Patched::Done(answer) => {
                let unreadable = |why| {
                    let why = format!("it is done, and the answer cannot be read: {why}");
                    PortError::lasting(answer.attempted.as_str(), why)
                };
                Ok(Marked::Done(Box::new(self.found(&found.group, answer.object(crd::object).map_err(unreadable)?))))
            }
            Patched::Changed => Ok(Marked::Changed),
            Patched::Gone => Ok(Marked::Gone),
        }
    }

    async fn patch(&self, group: &str, object: &Object, marks: &[Mark<'_>], exact: bool) -> Result<Patched, PortError> {
        let PipelineId { namespace, name } = &object.id;
        let annotations: serde_json::Map<String, Value> =
            marks.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let mut metadata = json!({"annotations": annotations, "uid": object.uid});
        if exact && let Some(fields) = metadata.as_object_mut() {
            fields.insert("resourceVersion".to_owned(), json!(object.version));
        }
        let of = of::<PipelineKind>(group, Some(namespace));
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
    async fn is_another(&self, of: &Collection, object: &Object) -> Result<bool, PortError> {
        #[derive(Deserialize)]
        struct Named {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            uid: String,
        }
        let Some(answer) = self.api.get(of, &object.id.name).await? else { return Ok(true) };
        Ok(answer.json::<Named>()?.metadata.uid != object.uid)
    }

    /// Who we are, as the API server knows us.
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
        let called = self.first(id, crd::called).await?;
        Ok(called.map(|(group, called)| {
            let object = if self.confined { crd::confined(called.object) } else { called.object };
            Called { group: group.to_owned(), object, ..called }
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

/// Why there is nothing to see in a cluster without the kind.
pub const ABSENT: &str = "this cluster does not have the kind Pipeline; `allclear crds | kubectl apply -f -` adds it";

/// One of a list. One that cannot be read is named, and hides no other.
fn entry(json: &str) -> Result<Listed, String> {
    #[derive(Deserialize)]
    struct Named {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        namespace: String,
        name: String,
    }
    crd::object(json).map(|object| Listed::Read(Box::new(object))).or_else(|why| {
        let Named { metadata } = serde_json::from_str(json).map_err(|error| error.to_string())?;
        Ok(Listed::Unreadable(PipelineId::new(metadata.namespace, metadata.name), why))
    })
}
