//! The tables of the older controller's tests, in its own words.

use super::*;
use crate::kept::{Answers, Finalizers};
use crate::pipeline::status::{OpenRequest, Promotion, Status, TargetStatus, Waiting};
use crate::status::Approval;
use kernel::id::{PipelineId, PromotionSeq};

fn app() -> App {
    App { api_version: "helm.toolkit.fluxcd.io/v2beta1".into(), kind: "HelmRelease".into(), name: "app".into() }
}

fn how(secret: Option<&str>) -> How {
    How { secret: secret.map(str::to_owned), is_complete: true }
}

fn environment(name: &str, namespaces: &[&str]) -> CalledEnvironment {
    let namespaces = namespaces.iter().map(|one| (*one).to_owned()).collect();
    CalledEnvironment { name: Environment(name.to_owned()), after: None, namespaces, promotion: None }
}

fn pipeline() -> Called {
    let object = Object {
        id: PipelineId::new("default", "app"),
        uid: "u".to_owned(),
        generation: 1,
        version: "1".to_owned(),
        spec: Err("not looked at".to_owned()),
        answers: Answers::default(),
        status: Status::default(),
        deleting: false,
        finalizers: Finalizers::default(),
    };
    let environments =
        vec![environment("dev", &["default"]), environment("prod", &["default"]), environment("no-targets", &[])];
    Called { group: "allclear.dev".to_owned(), object, app: app(), environments, promotion: None }
}

fn claim() -> Claim {
    Claim { app: app(), namespace: "default".to_owned() }
}

/// `lookupNextEnvironment` and its tests: TestPromotionInvolvedObjectDoesntMatch, …BeyondLastEnv, …ToEnvWithoutTarget, …FromUnknownEnv.
#[test]
fn an_event_is_refused_in_the_older_controllers_words() {
    let called = pipeline();
    assert_eq!(called.next("dev", &claim()).map(|next| next.name.0.as_str()), Ok("prod"));
    let no_match = "involved object does not match Pipeline definition";
    let wrong: [fn(&mut Claim); 4] = [
        |claim| claim.app.name = "foo".into(),
        |claim| claim.namespace = "foo".into(),
        |claim| claim.app.api_version = "foo".into(),
        |claim| claim.app.kind = "foo".into(),
    ];
    for change in wrong {
        let mut claim = claim();
        change(&mut claim);
        assert_eq!(called.next("dev", &claim).unwrap_err().to_string(), no_match);
        // What is wrong with the path is said before what is wrong with the object.
        for (source, words) in [
            ("no-targets", "cannot promote beyond last environment no-targets"),
            ("prod", "environment no-targets has no targets"),
            ("foo", "app default/app has no environment foo defined"),
        ] {
            assert_eq!(called.next(source, &claim).unwrap_err().to_string(), words);
        }
    }
}

#[test]
fn the_way_and_the_key_are_those_of_the_environment_or_else_the_default() {
    let mut called = pipeline();
    assert_eq!((called.how("prod"), called.promotion_secret("dev")), (None, None));
    called.promotion = Some(how(Some("all")));
    assert_eq!((called.promotion_secret("dev"), called.approval_secret("prod")), (Some("all"), Some("all")));
    // Also where the environment is unknown, or the last: that is said only to who has the key.
    assert_eq!((called.promotion_secret("foo"), called.promotion_secret("no-targets")), (Some("all"), Some("all")));
    called.environments[1].promotion = Some(how(Some("prod")));
    assert_eq!((called.promotion_secret("dev"), called.approval_secret("prod")), (Some("prod"), Some("prod")));
    assert_eq!((called.promotion_secret("prod"), called.approval_secret("dev")), (Some("all"), Some("all")));
    // One that has a way and no key is not open to all for that.
    called.environments[1].promotion = Some(how(None));
    assert_eq!(called.promotion_secret("dev"), Some("all"));
    called.environments[1].promotion = Some(How { secret: None, is_complete: false });
    assert_eq!(called.how("prod"), None);
}

fn waiting(revision: &str, ticket: &str, question: Question) -> Waiting {
    Waiting { revision: Revision(revision.to_owned()), ticket: ticket.to_owned(), question, since_ms: 0 }
}

fn promotion(revision: &str, phase: Phase, ticket: Option<&str>) -> Promotion {
    Promotion {
        seq: PromotionSeq(2),
        revision: Revision(revision.to_owned()),
        from: None,
        phase,
        started_ms: None,
        approval: ticket.map(|ticket| Approval { by: None, ticket: ticket.to_owned(), at_ms: 0, overrides: false }),
        rollback: None,
        returns: false,
        chosen: None,
        message: String::new(),
    }
}

fn knowing(known: EnvironmentStatus) -> Called {
    let mut called = pipeline();
    called.object.status.environments.insert(Environment("prod".to_owned()), known);
    called
}

#[test]
fn a_yes_counts_for_the_question_that_it_names() {
    let yes = |ticket: &str| Ok(Yes::To(ticket.to_owned()));
    let refused = Err(NoUse::NotWaiting);
    let ask =
        |question| knowing(EnvironmentStatus { waiting: Some(waiting("5.0.0", "t1", question)), ..Default::default() });
    let called = ask(Question::Approval);
    assert_eq!(called.approve("prod", "5.0.0", Some("t1")), yes("t1"));
    assert_eq!(called.approve("prod", "5.0.0", None), yes("t1"));
    // TestApprovalValidateRevision.
    for (environment, revision, ticket) in [
        ("prod", "4.0.0", Some("t1")),
        ("prod", "5.0.0", Some("t0")),
        ("dev", "5.0.0", Some("t1")),
        ("prod", "4.0.0", None),
    ] {
        assert_eq!(called.approve(environment, revision, ticket), refused, "{environment} {revision} {ticket:?}");
    }
    // A yes without a ticket says only that a revision may go on.
    for question in [Question::Again, Question::Left, Question::Overwrite] {
        assert_eq!(ask(question).approve("prod", "5.0.0", None), refused, "{question:?}");
        assert_eq!(ask(question).approve("prod", "5.0.0", Some("t1")), yes("t1"), "{question:?}");
    }
    let mut gone = ask(Question::Approval);
    gone.environments.remove(1);
    let words = "app default/app has no environment prod defined";
    assert_eq!(gone.approve("prod", "5.0.0", Some("t1")).unwrap_err().to_string(), words);
}

#[test]
fn a_yes_that_was_said_is_known_again_and_one_for_an_earlier_promotion_is_not() {
    let promoted =
        |phase| EnvironmentStatus { promotion: Some(promotion("5.0.0", phase, Some("t1"))), ..Default::default() };
    let called = knowing(promoted(Phase::Proposed));
    assert_eq!(called.approve("prod", "5.0.0", Some("t1")), Ok(Yes::Said));
    assert_eq!(called.approve("prod", "5.0.0", None), Ok(Yes::Said));
    assert!(
        called.approve("prod", "5.0.0", Some("t0")).is_err() && called.approve("prod", "5.1.0", Some("t1")).is_err()
    );
    // A → B → A: the same revision, another question.
    let again =
        EnvironmentStatus { waiting: Some(waiting("5.0.0", "t2", Question::Left)), ..promoted(Phase::Completed) };
    let called = knowing(again);
    assert!(called.approve("prod", "5.0.0", Some("t1")).is_err() && called.approve("prod", "5.0.0", None).is_err());
    assert_eq!(called.approve("prod", "5.0.0", Some("t2")), Ok(Yes::To("t2".to_owned())));
    assert!(called.is_open("prod", "t2") && !called.is_open("prod", "t1") && !called.is_open("dev", "t2"));
    assert!(called.is_asked("prod", "5.0.0") && !called.is_asked("prod", "5.1.0"));
}

#[test]
fn what_came_of_it_is_read_from_the_newest_promotion_of_that_revision() {
    let url = || Shown::Requested("https://git.example.com/1".to_owned());
    let request = |seq| OpenRequest {
        seq: PromotionSeq(seq),
        number: Some(1),
        url: "https://git.example.com/1".into(),
        commit: None,
        lacks: Default::default(),
        repository: None,
    };
    let of = |revision, phase, request| {
        let promotion = Some(promotion(revision, phase, None));
        knowing(EnvironmentStatus { promotion, request, ..Default::default() }).shown("prod", "5.0.0")
    };
    assert_eq!(pipeline().shown("prod", "5.0.0"), Shown::Nothing);
    assert_eq!(of("5.0.0", Phase::Proposed, Some(request(2))), url());
    assert_eq!(of("5.0.0", Phase::Landed, Some(request(2))), url());
    assert_eq!(of("5.0.0", Phase::Landed, None), Shown::Done);
    assert_eq!(of("5.0.0", Phase::Landed, Some(request(1))), Shown::Done, "the request is an earlier promotion's");
    assert_eq!(of("5.0.0", Phase::Completed, None), Shown::Done);
    assert_eq!(of("5.0.0", Phase::Started, Some(request(1))), Shown::Nothing, "the request is an earlier promotion's");
    let unknown = OpenRequest { number: None, ..request(2) };
    assert_eq!(of("5.0.0", Phase::Started, Some(unknown)), Shown::Nothing);
    assert_eq!(of("4.0.0", Phase::Proposed, Some(request(2))), Shown::Nothing);
    for phase in [Phase::Waiting, Phase::Superseded, Phase::Withdrawn, Phase::Abandoned] {
        assert_eq!(of("5.0.0", phase, None), Shown::Nothing, "{phase:?}");
    }
    let target = |revision: &str| TargetStatus { revision: Some(Revision(revision.to_owned())), ..Default::default() };
    let at = |targets| knowing(EnvironmentStatus { targets, ..Default::default() }).shown("prod", "5.0.0");
    assert_eq!(at(vec![target("5.0.0"), target("5.0.0")]), Shown::Done, "it is there already");
    assert_eq!(at(vec![target("5.0.0"), target("4.0.0")]), Shown::Nothing);
    assert_eq!(at(Vec::new()), Shown::Nothing);
}
