//! The Kubernetes adapter against our stand-in of the API, over a socket, with faults in between (faults W1 to W8,
//! A1 and A4).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use allclear::adapters::kubernetes::{Clients, Cluster, Scope, Tempo};
use futures_util::StreamExt;
use kernel::id::{Kind, WorkloadId};
use kernel::retry::Backoff;
use purge::ports::{ClusterView, Flow, PortError, Sight};
use purge::workloads::workload::Workload;
use sandbox::http::{Action, Fault, Reply, Request, Seen, Server, When};
use sandbox::kubernetes::{KubernetesStandIn, Options as StandInOptions};

use crate::served;

mod custom;
mod events;
mod freezes;
mod histories;
mod jobs;
mod kinds;
mod lease;
mod leaves;
mod new_pods;
mod pipelines;
mod reading;
mod repos;
mod rollouts;
mod secrets;
mod serving;
mod strangers;
mod watching;

/// Nothing on loopback takes this long; whoever waits longer waits for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// A stand-in, served, and clients of it made the way the program makes them.
pub struct Bench {
    pub api: KubernetesStandIn,
    pub server: Server,
    pub clients: Clients,
}

impl Bench {
    pub async fn start() -> Self {
        let api = KubernetesStandIn::new(StandInOptions::default());
        let server = api.start().await.unwrap();
        let clients = served::clients(&api, &server).await;
        Self { api, server, clients }
    }

    fn cluster(&self, scope: Scope, tempo: Tempo) -> Cluster {
        Cluster::new(&self.clients, scope, tempo).following([Kind::Deployment].into())
    }

    /// A view of everything, at the pace of a test.
    pub fn view(&self) -> Cluster {
        self.cluster(Scope::All, brisk())
    }

    /// Answers the next requests that match with a status.
    pub fn refuse(&self, status: u16, times: u32, matches: impl Fn(&Request) -> bool + Send + Sync + 'static) {
        let body = format!(r#"{{"kind":"Status","code":{status},"message":"refused by the test"}}"#);
        let answer = Action::Answer(Reply::full(status, "application/json", body));
        self.server.inject(Fault::once(When::Before, answer).matching(matches).times(times));
    }

    /// Requests seen so far that match.
    fn seen(&self, matches: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        self.server.seen().into_iter().filter(|seen| matches(seen)).collect()
    }
}

/// Milliseconds instead of seconds.
fn brisk() -> Tempo {
    Tempo {
        unserved: Duration::from_millis(50),
        unlisted: Duration::from_millis(300),
        backoff: Backoff { base: Duration::from_millis(10), cap: Duration::from_millis(50) },
        answer: Duration::from_secs(5),
        idle: Duration::from_secs(10),
        prove: None,
        ..Tempo::default()
    }
}

fn classic() -> Tempo {
    Tempo { streaming: false, ..brisk() }
}

fn namespaces(names: &[&str]) -> Scope {
    Scope::Namespaces(names.iter().map(|name| (*name).to_owned()).collect())
}

fn web() -> WorkloadId {
    WorkloadId::deployment("shop", "web")
}

fn is_watch(request: &Request) -> bool {
    request.query.contains_key("watch")
}

fn is_list(request: &Request) -> bool {
    !is_watch(request)
}

/// Reads a watch the way its consumer does: what a listing does not mention is gone.
struct Reader {
    flow: Flow<Sight>,
    known: BTreeMap<WorkloadId, Workload>,
    unreadable: BTreeMap<WorkloadId, String>,
    unseen: BTreeSet<WorkloadId>,
    /// All that was said, in short.
    said: Vec<String>,
    troubles: Vec<PortError>,
}

impl Reader {
    fn of(view: &Cluster) -> Self {
        Self {
            flow: view.watch(),
            known: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            unseen: BTreeSet::new(),
            said: Vec::new(),
            troubles: Vec::new(),
        }
    }

    /// A reader that has read up to the end of the first listing.
    async fn synced(view: &Cluster) -> Self {
        let mut reader = Self::of(view);
        reader.until("all is synced", |reader| reader.said("synced all")).await;
        reader
    }

    fn said(&self, what: &str) -> bool {
        self.said.iter().any(|said| said == what)
    }

    fn count(&self, what: &str) -> usize {
        self.said.iter().filter(|said| *said == what).count()
    }

    /// Forgets what was said, not what is known.
    fn forget(&mut self) {
        self.said.clear();
        self.troubles.clear();
    }

    /// The images seen of a workload that exists: `web shop/web:1`.
    fn version(&self, id: &WorkloadId) -> Option<String> {
        self.known.get(id).map(|workload| workload.version.as_ref().unwrap().to_string())
    }

    async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let wait = async {
            while !holds(self) {
                let sight = self.flow.next().await.expect("a watch never ends");
                self.take(sight);
            }
        };
        let ended = tokio::time::timeout(PATIENCE, wait).await;
        assert!(ended.is_ok(), "waited in vain until {what}; said was {:?}, troubles {:?}", self.said, self.troubles);
    }

    fn take(&mut self, sight: Sight) {
        let said = match sight {
            Sight::Restarted { scope } => {
                self.unseen.extend(self.known.keys().filter(|id| scope.contains(*id)).cloned());
                format!("restarted {}", scope.as_str())
            }
            Sight::Seen(workload) => {
                self.unseen.remove(&workload.id);
                self.unreadable.remove(&workload.id);
                let said = format!("seen {}", workload.id.name);
                self.known.insert(workload.id.clone(), *workload);
                said
            }
            Sight::Unreadable(id, why) => {
                self.unseen.remove(&id);
                let said = format!("unreadable {}", id.name);
                self.unreadable.insert(id, why.to_string());
                said
            }
            Sight::Gone(id) => {
                self.known.remove(&id);
                format!("gone {}", id.name)
            }
            Sight::Synced { scope, all } => {
                let gone: Vec<WorkloadId> = self.unseen.iter().filter(|id| scope.contains(*id)).cloned().collect();
                for id in gone {
                    self.unseen.remove(&id);
                    self.known.remove(&id);
                }
                if all { "synced all".to_owned() } else { format!("synced {}", scope.as_str()) }
            }
            Sight::Trouble { scope: _, error } | Sight::Refused { error, .. } => {
                self.troubles.push(error);
                "trouble".to_owned()
            }
            Sight::SetBack { from, to } => {
                assert!(to < from, "{from} to {to}");
                "set back".to_owned()
            }
        };
        self.said.push(said);
    }
}
