//! T12: what a tenant writes comes to people as words, and as nothing else.

use std::time::Duration;

use sandbox::kubernetes::Kind;
use serde_json::json;
use support::process::program;

use crate::scene::{HOST, NAME, NAMESPACE, Scene, image};

/// In every text of the tenant: a line break and a line of its own, an escape sequence in both forms, and marks that turn
/// letters around or have no width.
const FORGED: &str = "x\nFORGED: INFO purged kind=\"purge.completed\"\r\u{1b}[31mred\u{9b}1m\u{202e}txt\u{2066}a\u{200b}b\u{200f}\u{61c}";

/// A Deployment whose image is no image.
const OTHER: &str = "other";

/// What no terminal may get, by its numbers in the Unicode standard; line breaks are looked at by themselves.
fn hidden(text: &str) -> usize {
    let marks = [0x61c, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0xfeff];
    let is_hidden = |code: u32| {
        (code < 32 && code != 10)
            || (127..160).contains(&code)
            || marks.contains(&code)
            || (0x202a..=0x202e).contains(&code)
            || (0x2066..=0x2069).contains(&code)
    };
    text.chars().filter(|c| is_hidden(u32::from(*c))).count()
}

/// The Deployment has this image, annotations and conditions of the tenant's, and goes on no further.
fn turn_hostile(scene: &mut Scene) {
    scene.freeze();
    let mut web = scene.world.kubernetes.get(Kind::Deployment, NAMESPACE, NAME).unwrap();
    let generation = web["metadata"]["generation"].as_i64().unwrap() + 1;
    web["metadata"]["generation"] = json!(generation);
    for name in ["hosts", "containers", "rollout-timeout", "requested-at", "paths", "distribution-ids"] {
        web["metadata"]["annotations"][format!("allclear.dev/{name}")] = json!(FORGED);
    }
    web["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image("2.0"));
    let failure = json!({"type": "ReplicaFailure", "status": "True", "reason": FORGED, "message": FORGED});
    web["status"] = json!({
        "observedGeneration": generation, "replicas": 3, "updatedReplicas": 0, "readyReplicas": 3, "availableReplicas": 3,
        "conditions": [failure],
    });
    scene.world.kubernetes.put(web).unwrap();
    let backend = json!({"service": {"name": NAME, "port": {"number": 80}}});
    let rule = |host: &str| json!({"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}});
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"namespace": NAMESPACE, "name": "hostile"},
        "spec": {"rules": [rule(HOST), rule(FORGED)]},
    });
    scene.world.kubernetes.put(ingress).unwrap();
    let mut other = scene.world.kubernetes.get(Kind::Deployment, NAMESPACE, OTHER).unwrap();
    other["spec"]["template"]["spec"]["containers"][0]["image"] = json!(format!("registry.example.com/x:{FORGED}"));
    scene.world.kubernetes.put(other).unwrap();
}

/// What a command of the program says, on both ways.
async fn said(scene: &Scene, arguments: &[&str]) -> String {
    let run = tokio::process::Command::new(program()).args(arguments).env_clear().envs(&scene.environment).output();
    let output = tokio::time::timeout(Duration::from_secs(60), run).await.unwrap().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

// Faults: T12
#[tokio::test]
async fn t12_what_a_tenant_writes_forges_no_line_and_hides_nothing_anywhere() {
    let mut scene = Scene::new().await;
    scene.set("ALLCLEAR__LOG__FORMAT", "text");
    scene.set("ALLCLEAR__LOG__LEVEL", "debug");
    scene.add_workload(OTHER);
    scene.start().await;
    turn_hostile(&mut scene);
    let shows = async |scene: &Scene| scene.process().state().await["rollouts"].to_string().contains("FORGED");
    scene.wait_until("the page shows what the tenant wrote", shows).await;
    let told =
        async |scene: &Scene| scene.events_of(NAME).concat().contains("FORGED") && scene.process().said("FORGED");
    scene.wait_until("an Event and the log tell what the tenant wrote", told).await;

    let shows = async |scene: &Scene| scene.events_of(OTHER).concat().contains("is not an image reference");
    scene.wait_until("an Event tells what an image says", shows).await;

    let mut outputs = vec![
        ("log".to_owned(), scene.process().log().join("\n")),
        ("Events".to_owned(), [scene.events_of(NAME), scene.events_of(OTHER)].concat().join("\n")),
    ];
    for page in ["/", "/api/v1/state", "/readyz"] {
        outputs.push((page.to_owned(), scene.process().get(page).await.map(|(_, body)| body).unwrap()));
    }
    let server = format!("http://{}", scene.process().address("/").unwrap());
    let commands: [&[&str]; 7] = [
        &["explain", "-n", NAMESPACE, NAME],
        &["explain", "-n", NAMESPACE, OTHER],
        &["explain"],
        &["explain", "-n", NAMESPACE, NAME, "-o", "json"],
        &["status"],
        &["status", "--server", &server],
        &["status", "-o", "json"],
    ];
    for command in commands {
        outputs.push((command.join(" "), said(&scene, command).await));
    }
    let (mut bad, mut without) = (Vec::new(), Vec::new());
    for (what, text) in &outputs {
        let forged = text.lines().filter(|line| line.trim_start().starts_with("FORGED")).count();
        if forged + hidden(text) > 0 {
            bad.push(format!("{what}: {forged} forged lines, {} hidden characters", hidden(text)));
        }
        if !text.contains("FORGED") && what != "/readyz" {
            without.push(what);
        }
    }
    println!("T12: outputs of {} with a forged line or a hidden character {} (aim 0)", outputs.len(), bad.len());
    assert!(bad.is_empty(), "{bad:#?}");
    assert!(without.is_empty(), "these show nothing of the tenant's, so they prove nothing: {without:?}");
}
