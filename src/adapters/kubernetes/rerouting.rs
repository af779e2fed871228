//! Watches what routes: Services, Ingresses, and the routes of the Gateway API. Of each object a hash is kept of what a site is found
//! from; a change that touches none of that is not reported. So what a controller writes into a status all day costs nothing behind it.
//!
//! The kinds of the Gateway API are looked for until the cluster has them. Gateways and grants are not watched: what they change shows in
//! the routes' status, or with the next change of another object.
//!
//! Not for what leads where; that is read afresh after a change (`site`).

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use futures_util::stream::{iter, once, select_all};
use futures_util::{FutureExt, StreamExt};

use super::gateway::{GRPC_ROUTES, HTTP_ROUTES, grpc_route, http_route};
use super::rollouts::is_unserved;
use super::routing::{Counted, INGRESSES, SERVICES, ingress, service};
use super::{Collection, Scope};
use apiserver::{Api, Decoder, Look, Name, Reach, Reading, Resource, Watches};
use kernel::answer::Flow;
use kernel::unreadable::Unreadable;
use purge::ports::RoutingSight;

/// The kinds, and whether every cluster has them.
const KINDS: [(&str, Resource, Decoder<Mark>, bool); 4] = [
    ("Service", SERVICES, |json| mark(service(json)?, |fact| (&fact.namespace, &fact.name)), true),
    ("Ingress", INGRESSES, |json| mark(ingress(json)?, |fact| (&fact.namespace, &fact.name)), true),
    ("HTTPRoute", HTTP_ROUTES, |json| mark(http_route(json)?, |fact| (&fact.namespace, &fact.name)), false),
    ("GRPCRoute", GRPC_ROUTES, |json| mark(grpc_route(json)?, |fact| (&fact.namespace, &fact.name)), false),
];

/// An object, and a hash of what counts of it. Compared within one life of the program only.
#[derive(Debug)]
struct Mark {
    of: Name,
    hash: u64,
}

fn mark<T: Hash>((fact, _): Counted<T>, name: impl Fn(&T) -> (&String, &String)) -> Result<Mark, Unreadable> {
    let (namespace, name) = name(&fact);
    Ok(Mark { of: Name { namespace: namespace.clone(), name: name.clone() }, hash: hashed(&fact) })
}

fn hashed(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Watches all of them, for ever.
pub(super) fn watch(watches: &Watches, api: &Api, scope: &Scope) -> Flow<RoutingSight> {
    let watched = |(kind, resource, decode, everywhere): (&'static str, Resource, Decoder<Mark>, bool)| {
        let listed = match scope {
            Scope::All => vec![Collection::everywhere(resource.clone())],
            Scope::Namespaces(names) => names.iter().map(|name| Collection::of(resource.clone(), name)).collect(),
        };
        let looks: Vec<Flow<Look<Mark>>> =
            listed.into_iter().map(|of| watches.watch(of, decode, Reach::default())).collect();
        let sights = looks.into_iter().map(move |looks| {
            let mut known = Known::default();
            looks.flat_map(move |look| iter(known.sights(kind, look)))
        });
        let sights: Flow<RoutingSight> = Box::pin(select_all(sights));
        if everywhere {
            return sights;
        }
        let (api, again, of) = (api.clone(), watches.tempo.unserved, Collection::everywhere(resource));
        let found = async move {
            while is_unserved(&api, &of).await {
                tokio::time::sleep(again).await;
            }
        };
        Box::pin(once(found.boxed()).flat_map(|()| iter(Vec::new())).chain(sights)) as Flow<RoutingSight>
    };
    Box::pin(select_all(KINDS.into_iter().map(watched)))
}

/// What one watch has seen.
#[derive(Default)]
struct Known {
    /// Hashes by namespace, and by the hash of the name.
    marks: BTreeMap<String, BTreeMap<u64, u64>>,
    /// What was known before the listing that is under way, and was not seen in it yet.
    before: BTreeMap<String, BTreeMap<u64, u64>>,
    /// It was listed to the end once: what is seen for the first time since then is new.
    synced: bool,
}

impl Known {
    /// What a look means to those who want to know of changes.
    fn sights(&mut self, kind: &'static str, look: Look<Mark>) -> Vec<RoutingSight> {
        let changed = |namespace: String| RoutingSight::Changed { namespace };
        match look {
            Look::Restarted => {
                for (namespace, marks) in std::mem::take(&mut self.marks) {
                    self.before.entry(namespace).or_default().extend(marks);
                }
                Vec::new()
            }
            Look::Seen(Reading::Read(Mark { of, hash })) => self.see(of, hash).map(changed).into_iter().collect(),
            // Whatever it says, it is not what it said before.
            Look::Seen(Reading::Unreadable(of, _)) => self.see(of, 0).map(changed).into_iter().collect(),
            Look::Gone(of) => {
                self.take(&of);
                vec![changed(of.namespace)]
            }
            Look::Synced => {
                self.synced = true;
                let gone: BTreeSet<String> = std::mem::take(&mut self.before).into_keys().collect();
                gone.into_iter().map(changed).chain([RoutingSight::Synced { kind }]).collect()
            }
            Look::Trouble(error) => vec![RoutingSight::Trouble { kind, error }],
        }
    }

    /// The namespace in which something changed by this sight.
    fn see(&mut self, of: Name, hash: u64) -> Option<String> {
        let before = self.take(&of);
        self.marks.entry(of.namespace.clone()).or_default().insert(hashed(&of.name), hash);
        let is_news = before.map_or(self.synced, |before| before != hash);
        is_news.then_some(of.namespace)
    }

    /// Forgets an object, and says what its hash was.
    fn take(&mut self, of: &Name) -> Option<u64> {
        let name = hashed(&of.name);
        [&mut self.marks, &mut self.before].into_iter().find_map(|all| {
            let marks = all.get_mut(&of.namespace)?;
            let taken = marks.remove(&name);
            if marks.is_empty() {
                all.remove(&of.namespace);
            }
            taken
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn web(selector: Value, status: Value) -> Look<Mark> {
        let object = json!({
            "metadata": {"namespace": "shop", "name": "web", "resourceVersion": status.to_string()},
            "spec": {"selector": selector, "clusterIP": "10.0.0.1"}, "status": status,
        });
        let (_, _, decode, _) = KINDS[0];
        Look::Seen(Reading::Read(decode(&object.to_string()).unwrap()))
    }

    /// The namespaces that changed.
    fn changed(known: &mut Known, look: Look<Mark>) -> Vec<String> {
        let sights = known.sights("Service", look).into_iter();
        sights
            .filter_map(|sight| if let RoutingSight::Changed { namespace } = sight { Some(namespace) } else { None })
            .collect()
    }

    #[test]
    fn only_what_touches_a_site_is_a_change_and_nothing_of_a_first_listing() {
        let mut known = Known::default();
        let (blue, green) = (json!({"app": "blue"}), json!({"app": "green"}));
        let none: [&str; 0] = [];
        assert_eq!(changed(&mut known, Look::Restarted), none);
        assert_eq!(changed(&mut known, web(blue.clone(), json!(1))), none, "a first listing");
        assert_eq!(changed(&mut known, Look::Synced), none);
        assert_eq!(changed(&mut known, web(blue.clone(), json!(2))), none, "its status");
        assert_eq!(changed(&mut known, web(green.clone(), json!(2))), ["shop"]);
        assert_eq!(changed(&mut known, Look::Restarted), none);
        assert_eq!(changed(&mut known, web(green.clone(), json!(3))), none, "listed again");
        assert_eq!(changed(&mut known, Look::Synced), none);
        assert_eq!(changed(&mut known, Look::Restarted), none);
        assert_eq!(changed(&mut known, web(blue, json!(3))), ["shop"], "changed while we were not looking");
        assert_eq!(changed(&mut known, Look::Synced), none);
    }

    #[test]
    fn what_is_new_gone_or_cannot_be_read_any_more_is_a_change() {
        let mut known = Known::default();
        let name = || Name { namespace: "shop".into(), name: "web".into() };
        let web_is = |hash| Look::Seen(Reading::Read(Mark { of: name(), hash }));
        changed(&mut known, Look::Synced);
        assert_eq!(changed(&mut known, web_is(1)), ["shop"], "new");
        let broken = || Look::Seen(Reading::Unreadable(name(), Unreadable::because("it is broken")));
        assert_eq!(changed(&mut known, broken()), ["shop"]);
        assert_eq!(changed(&mut known, broken()), [""; 0]);
        assert_eq!(changed(&mut known, Look::Gone(name())), ["shop"]);
        changed(&mut known, web_is(1));
        changed(&mut known, Look::Restarted);
        assert_eq!(changed(&mut known, Look::Synced), ["shop"], "gone while we were not looking");
        assert!(known.before.is_empty() && known.marks.is_empty());
    }
}
