//! What is said of a replica, by what was seen.

use expect_test::expect;
use kernel::names::image::Version;
use kernel::names::selector::LabelSelector;
use kinds::reported::Replicas as Counts;
use purge::ports::Retry;

use super::*;

fn claim(holder: &str) -> Claim {
    let at = "2026-11-24T11:20:05.000000Z".to_owned();
    Claim { holder: holder.to_owned(), renewed: at.clone(), acquired: at, transitions: 0, version: "1".to_owned() }
}

fn deployment(desired: u32) -> Controller {
    let workload = purge::workloads::workload::Workload {
        id: kernel::id::WorkloadId::deployment("allclear", "allclear"),
        object: kernel::id::Kind::Deployment,
        uid: "u".to_owned(),
        created: String::new(),
        generation: 1,
        observed_generation: 1,
        version: Ok(Version::default()),
        replicas: Counts { desired, ..Counts::default() },
        deleting: false,
        says: Default::default(),
        refused: None,
        starting: false,
        template_of: None,
        stable: None,
        withdrawn: None,
        newest: Default::default(),
        selector: LabelSelector::default(),
        template_labels: Default::default(),
        tuning: Default::default(),
    };
    Controller { workload, account: "allclear".to_owned(), dry_run: false, config_maps: Vec::new() }
}

fn pod(trouble: Option<&str>) -> Pod {
    Pod {
        name: "allclear-7d9-x4".to_owned(),
        version: None,
        ready: false,
        terminating: false,
        started: trouble.is_none(),
        finished: false,
        trouble: trouble.map(str::to_owned),
    }
}

fn denied() -> PortError {
    PortError { denied: true, retry: Retry::Never, ..PortError::lasting("failed to list", "403 Forbidden") }
}

fn seen(claim: Option<Claim>, controllers: Vec<Controller>, pods: Vec<Pod>) -> Seen {
    Seen { lease: Ok(claim), controllers: Ok(controllers), pods: Ok(pods) }
}

fn idle(seen: &Seen) -> String {
    match judge(seen, "allclear") {
        Replicas::Idle(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_holder_works_whatever_else_cannot_be_seen() {
    let seen = Seen { lease: Ok(Some(claim("allclear-1_x"))), controllers: Err(denied()), pods: Err(denied()) };
    let works = judge(&seen, "allclear");
    assert!(works.trouble().is_none() && matches!(works, Replicas::Work { holder, .. } if holder == "allclear-1_x"));
}

#[test]
fn each_way_not_to_run_is_named_with_the_last_sign_of_life() {
    let given_back = |controllers, pods| seen(Some(claim("")), controllers, pods);
    let mut quota = deployment(1);
    quota.workload.refused = Some("exceeded quota".to_owned());
    let said = [
        given_back(vec![deployment(1)], vec![pod(Some("ImagePullBackOff"))]),
        given_back(vec![deployment(0)], vec![]),
        given_back(vec![], vec![]),
        given_back(vec![deployment(1)], vec![pod(Some("CrashLoopBackOff after Error (exit code 2)"))]),
        given_back(vec![quota], vec![]),
        seen(None, vec![deployment(1)], vec![pod(None)]),
    ];
    expect![[r#"
        no replica works since 2026-11-24 11:20:05Z: allclear-7d9-x4: ImagePullBackOff
        no replica works since 2026-11-24 11:20:05Z: Deployment allclear/allclear is scaled to zero
        no replica works since 2026-11-24 11:20:05Z: there is no Deployment of it in namespace allclear (app.kubernetes.io/part-of=allclear)
        no replica works since 2026-11-24 11:20:05Z: allclear-7d9-x4: CrashLoopBackOff after Error (exit code 2), which says that its configuration is refused; kubectl logs --previous names each problem
        no replica works since 2026-11-24 11:20:05Z: it has no pods: exceeded quota
        no replica works: allclear-7d9-x4 runs, and is not ready yet
    "#]].assert_eq(&said.map(|seen| idle(&seen) + "\n").concat());
}

#[test]
fn what_could_not_be_seen_is_never_taken_for_nothing() {
    let blind = Seen { lease: Err(denied()), controllers: Err(denied()), pods: Err(denied()) };
    let words = judge(&blind, "allclear").trouble().unwrap();
    assert!(words.starts_with("whether a replica works is not known: ") && words.contains("403"), "{words}");
    let no_pods = Seen { pods: Err(denied()), ..seen(None, vec![deployment(1)], vec![]) };
    assert!(idle(&no_pods).starts_with("no replica works: why is not known: "));
    // Without a right to Leases, a pod that is ready is enough, and one that is not is too little.
    let ready = Pod { ready: true, ..pod(None) };
    let by_pods = Seen { lease: Err(denied()), ..seen(None, vec![deployment(1)], vec![ready.clone()]) };
    assert_eq!(judge(&by_pods, "allclear").trouble(), None);
    let sick = Seen { lease: Err(denied()), ..seen(None, vec![deployment(1)], vec![pod(Some("ImagePullBackOff"))]) };
    assert_eq!(idle(&sick), "no replica works: allclear-7d9-x4: ImagePullBackOff");
    let dry = Controller { dry_run: true, ..deployment(1) };
    assert_eq!(judge(&seen(None, vec![dry], vec![ready]), "allclear"), Replicas::RunDry);
}

#[test]
fn a_renewal_is_recent_on_clocks_that_differ_a_little() {
    let at_ms = at("2026-11-24T11:20:05Z").unwrap();
    assert!(is_recent(&claim("x"), at_ms + 30_000) && is_recent(&claim("x"), at_ms - 30_000));
    assert!(
        !is_recent(&claim("x"), at_ms + 30_001) && !is_recent(&Claim { renewed: String::new(), ..claim("x") }, at_ms)
    );
}
