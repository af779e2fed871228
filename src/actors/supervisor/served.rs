//! Whether there is anything to tend: which places of a kind the API server serves and lets us list.

use std::collections::BTreeSet;

use crate::actors::object::Tended;
use purge::ports::PortError;

pub struct Served {
    /// The places that are tended, by their numbers.
    pub places: BTreeSet<usize>,
    /// Why others are not, where that is because a right is missing.
    pub refused: Option<String>,
}

/// Asks each place, or the first for all. With `leave` one that we may not list is left alone: a cluster may have the kind for others.
/// Where objects are tended already, a lost right is reported as a trouble.
///
/// # Errors
/// When the API server cannot be asked.
pub async fn served<T: Tended>(tended: &T, leave: bool) -> Result<Served, PortError> {
    let mut served = Served { places: BTreeSet::new(), refused: None };
    let all = &tended.ports().objects;
    let asked = if T::ONE_GROUP { 1 } else { all.len() };
    for (number, objects) in all.iter().enumerate().take(asked) {
        if !objects.are_served().await? {
            continue;
        }
        match objects.refused().await.filter(|_| leave) {
            Some(why) => served.refused = Some(why),
            None if T::ONE_GROUP => served.places = (0..all.len()).collect(),
            None => _ = served.places.insert(number),
        }
    }
    Ok(served)
}
