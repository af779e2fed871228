//! An update that is aborted: how the pods before stand.

use super::*;
use crate::reported::Reported;

#[test]
fn while_an_update_is_aborted_the_pods_before_are_those_that_are_wanted() {
    let said = |object: &Value| {
        let report = read(Kind::Rollout, object);
        let stable = report.own.stable.clone()?;
        let reported = Reported { replicas: stable.replicas, says: &stable.says, ..report.reported() };
        Some((stable.hash, format!("{:?}", reported.standing(false))))
    };
    let stands = |object: &Value| said(object).map(|(_, standing)| standing).unwrap_or_default();
    let degraded = ("/status/phase", json!("Degraded"));
    let abort = [("/status/abort", json!(true)), degraded];
    let back = |old: u32, new: u32, available: u32| {
        let counts = [
            ("/status/replicas", json!(old + new)),
            ("/status/updatedReplicas", json!(new)),
            ("/status/availableReplicas", json!(available)),
        ];
        [&abort[..], &counts].concat()
    };
    assert_eq!(said(&at_step(0, &[])), None, "it goes on");
    assert_eq!(said(&with(canary(), &abort)), None, "the mark of an abort of what is complete");
    let hash = at_step(0, &[])["status"]["stableRS"].as_str().unwrap().to_owned();
    assert_eq!(said(&at_step(0, &back(5, 0, 5))), Some((hash, "Complete".to_owned())));
    assert_ne!(stands(&at_step(0, &back(5, 1, 6))), "Complete", "a pod of the update is left");
    assert_ne!(stands(&at_step(0, &back(4, 0, 4))), "Complete");
    assert_ne!(stands(&at_step(0, &back(5, 0, 4))), "Complete");
    let progressing = ("/status/phase", json!("Progressing"));
    assert!(stands(&with(at_step(0, &back(5, 0, 5)), &[progressing])).contains("has not acted on the abort"));
    // Where the traffic is switched, the pods of the update stay for a while.
    let switched = |changes: &[(&str, Value)]| stands(&with(blue_green(&back(3, 3, 3)), changes));
    assert_eq!(switched(&[]), "Complete");
    let new = ("/status/blueGreen/activeSelector", json!("74b948fccb"));
    assert!(switched(&[new]).contains("its active Service does not lead to the pods before yet"));
    let routed = |weight: u32| {
        let weights = json!({"weights": {"canary": {"weight": weight}, "stable": {"weight": 100 - weight}}});
        let routing = ("/spec/strategy/canary/trafficRouting", json!({"nginx": {"stableIngress": "web"}}));
        stands(&with(at_step(0, &back(5, 2, 7)), &[routing, ("/status/canary", weights)]))
    };
    assert_eq!(routed(0), "Complete");
    assert!(routed(20).contains("its canary still has some of the traffic"));
}
