//! Starting the controller by hand, outside a pod: never by accident, and never unknowingly beside another one.
//!
//! Two ledgers in one cluster purge everything twice, since neither knows of the other. So a person who runs the controller
//! with a kubeconfig names the cluster and the ledger, and a cluster that has another ledger is refused. In a pod none of this
//! is asked: manifests say where it runs.

use std::collections::BTreeSet;

use super::start_error::{StartError, ask};
use crate::adapters::kubernetes::Clients;
use crate::adapters::ledger::kubernetes::find::{Ledgers, ledgers};
use crate::config::{Config, Namespaces};
use crate::looking::LEDGER_NAMESPACE;

/// What else there is to run than a controller that purges; the end of every refusal.
const INSTEAD: &str = "To see what it would do, without doing it: allclear run --dry-run. To see it work on this machine alone: \
                       allclear demo";

/// What follows from a second ledger.
pub const SECOND_LEDGER: &str = "there is another ledger in this cluster: every rollout that both see is purged twice";

/// Where no other ledger was seen, and not all could be looked at.
pub const PERHAPS_A_SECOND_LEDGER: &str = "found no other ledger, and the credentials do not allow to look everywhere: if allclear runs in this \
                                           cluster already, both purge";

/// How a person started it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByHand {
    /// The cluster was named by a flag or by `KUBECONFIG`, and is not just the one of the default kubeconfig.
    pub cluster_named: bool,
    /// A second ledger beside another one is meant.
    pub second_ledger: bool,
}

/// The same, once it is clear which cluster and which ledger are meant.
#[derive(Debug)]
pub struct Beside {
    namespace: String,
    second_ledger: bool,
}

impl ByHand {
    /// Whether cluster and ledger are named.
    ///
    /// # Errors
    /// When one of them is not, with what to say.
    pub fn named(self, config: &Config) -> Result<Beside, StartError> {
        let namespace = config.ledger.namespace.clone();
        let missing: Vec<&str> = [
            (!self.cluster_named).then_some(
                "the cluster (--kubeconfig, --context or KUBECONFIG; the default kubeconfig alone is not enough)",
            ),
            namespace.is_none().then_some("the namespace of its ledger (--ledger-namespace or ledger.namespace)"),
        ]
        .into_iter()
        .flatten()
        .collect();
        match namespace {
            Some(namespace) if missing.is_empty() => Ok(Beside { namespace, second_ledger: self.second_ledger }),
            Some(_) | None => Err(StartError::Unusable(format!(
                "this is not a pod, and a controller that is run by hand purges like any other; name {}. {INSTEAD}",
                missing.join(" and ")
            ))),
        }
    }
}

impl Beside {
    /// Looks for another ledger in the cluster, as far as the person's credentials allow.
    ///
    /// # Errors
    /// When there is one and a second one is not meant, or when nothing answers for good.
    pub async fn look_around(&self, config: &Config, clients: &Clients) -> Result<(), StartError> {
        let mut likely = BTreeSet::from([LEDGER_NAMESPACE.to_owned(), clients.namespace.clone()]);
        match &config.watch.namespaces {
            Namespaces::Listed(names) => likely.extend(names.iter().cloned()),
            Namespaces::All | Namespaces::AllOrOwn => {}
        }
        self.judge(ask("whether the cluster has another ledger", || ledgers(&clients.request, likely.clone())).await?)
    }

    fn judge(&self, found: Ledgers) -> Result<(), StartError> {
        let Ledgers { mut namespaces, partial } = found;
        namespaces.remove(&self.namespace);
        let others: Vec<&str> = namespaces.iter().map(String::as_str).collect();
        let others = others.join(", ");
        match (others.is_empty(), self.second_ledger) {
            (true, _) if partial => {
                tracing::warn!("{PERHAPS_A_SECOND_LEDGER}");
            }
            (true, _) => {}
            (false, true) => {
                tracing::warn!(other = %others, "{SECOND_LEDGER}");
            }
            (false, false) => {
                let first = namespaces.first().map(String::as_str).unwrap_or_default();
                return Err(StartError::Unusable(format!(
                    "this cluster has another ledger of allclear, in namespace {others}, and two ledgers purge twice. To share \
                     its work, name it: --ledger-namespace {first}. To purge twice all the same: --second-ledger. {INSTEAD}"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(namespaces: &[&str], partial: bool) -> Ledgers {
        Ledgers { namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(), partial }
    }

    #[test]
    fn a_ledger_elsewhere_is_refused_by_name_and_our_own_is_not() {
        let beside = |second_ledger| Beside { namespace: "mine".to_owned(), second_ledger };
        for none in [found_in(&[], false), found_in(&["mine"], false), found_in(&["mine"], true)] {
            assert!(beside(false).judge(none).is_ok());
        }
        let both = found_in(&["mine", "theirs", "zoo"], false);
        let refused = beside(false).judge(both.clone()).unwrap_err().to_string();
        for words in ["in namespace theirs, zoo", "--ledger-namespace theirs", "--second-ledger", "purge twice"] {
            assert!(refused.contains(words), "{words}: {refused}");
        }
        assert!(beside(true).judge(both).is_ok());
    }
}
