//! The file of tokens: private, whole, and survived when it is broken.

use std::os::unix::fs::PermissionsExt as _;

use crate::authority::*;
use crate::flow::Folder;

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn the_file_and_its_folder_are_for_their_owner_only() {
    let folder = Folder::new("mode");
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    connect_with(&server, options(&user).store(folder.store())).await.unwrap();
    let path = folder.store().path().to_owned();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{entry:?}");
        assert!(!entry.file_name().to_string_lossy().ends_with(&std::process::id().to_string()));
    }
}

#[tokio::test]
async fn a_broken_file_is_put_aside_at_the_next_login() {
    for broken in ["", "no JSON", "{\"version\":1}", "[]"] {
        let folder = Folder::new("broken");
        let store = folder.store();
        std::fs::create_dir_all(store.path().parent().unwrap()).unwrap();
        std::fs::write(store.path(), broken).unwrap();
        std::fs::set_permissions(store.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
        let error = store.list().await.unwrap_err().to_string();
        assert!(error.contains("is broken; remove it and log in again"), "{error}");

        let authority = authority();
        let server = protected(authority.clone()).await;
        let user = User::new(&authority, Does::Pastes);
        connect_with(&server, options(&user).store(store.clone())).await.unwrap();
        assert_eq!(store.list().await.unwrap().len(), 1);
        let aside = store.path().with_extension("json.broken");
        assert_eq!(std::fs::read_to_string(aside).unwrap(), broken);
    }
}

#[tokio::test]
async fn a_file_that_others_can_read_is_not_used() {
    let folder = Folder::new("open");
    let store = folder.store();
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    connect_with(&server, options(&user).store(store.clone())).await.unwrap();
    std::fs::set_permissions(store.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = store.list().await.unwrap_err().to_string();
    assert!(error.contains("others can read the tokens in it; run chmod 600 on it"), "{error}");
    // The connection works, with a new login, and the file is left as it is.
    connect_with(&server, options(&user).store(store.clone())).await.unwrap();
    assert_eq!(user.count(), 2);
    assert_eq!(mode(store.path()), 0o644);
}

/// A folder that cannot be written to: the login works, and is not kept.
#[tokio::test]
async fn a_store_that_cannot_be_written_does_not_stop_a_login() {
    let folder = Folder::new("readonly");
    // A file where the folder should be, which stops root as well.
    std::fs::write(folder.0.join("state"), "").unwrap();
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    connect_with(&server, options(&user).store(folder.store())).await.unwrap();
    assert!(folder.store().list().await.is_err());
}

/// Many writers at once lose nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logins_at_many_servers_at_once_are_all_kept() {
    let folder = Folder::new("many");
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let store = folder.store();
        tasks.push(tokio::spawn(async move {
            let authority = authority();
            let server = protected(authority.clone()).await;
            let user = User::new(&authority, Does::Pastes);
            connect_with(&server, options(&user).store(store)).await.unwrap();
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(folder.store().list().await.unwrap().len(), 8);
}

/// For programs that mask what they show.
#[tokio::test]
async fn the_secrets_that_are_kept_can_be_masked() {
    let folder = Folder::new("masked");
    assert!(folder.store().secrets().unwrap().is_empty(), "there is no file");
    let authority = authority();
    let server = protected(authority.clone()).await;
    let user = User::new(&authority, Does::Pastes);
    connect_with(&server, options(&user).store(folder.store())).await.unwrap();
    let secrets = folder.store().secrets().unwrap();
    let found: Vec<&str> = secrets.iter().map(|secret| secret.reveal()).collect();
    assert_eq!(found, ["access-secret-1", "refresh-secret-1", "client-secret-1"]);
}
