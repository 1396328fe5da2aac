//! Commits the program's own rows and the events about them in one transaction.
//!
//! Run it with `cargo run -p pointsman --example unit_of_work`.

use pointsman::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event(type = "account.debited", key = "account:{account}")]
struct AccountDebited {
    account: i64,
    amount: i64,
}

/// Debits an account, unless its balance is too low.
struct DebitOperation {
    account: i64,
    amount: i64,
}

impl Operation for DebitOperation {
    fn before_commit(&mut self, tx: &mut Tx<'_>) -> Result<(), BoxError> {
        let changed = tx.execute(
            "UPDATE accounts SET balance = balance - ?2 WHERE id = ?1 AND balance >= ?2",
            &[self.account.into(), self.amount.into()],
        )?;
        if changed == 0 {
            return Err(format!("account {} has less than {}", self.account, self.amount).into());
        }
        tx.emit(AccountDebited { account: self.account, amount: self.amount })?;
        Ok(())
    }

    fn on_post_commit(&mut self) {
        println!("committed: {} from account {}", self.amount, self.account);
    }

    fn on_rollback(&mut self) {
        println!("rolled back: {} from account {}", self.amount, self.account);
    }
}

async fn print_statement(event: AccountDebited) {
    println!("statement: account {} was debited {}", event.account, event.amount);
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let bus = Bus::builder("sqlite::memory:")
        .handler("statement", print_statement)
        .on::<AccountDebited>("statement")
        .start()
        .await?;

    let mut setup = bus.unit_of_work();
    setup.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)", []);
    setup.execute("INSERT INTO accounts VALUES (?1, ?2)", [7.into(), 100.into()]);
    setup.commit().await?;

    let mut affordable = bus.unit_of_work();
    affordable.register(DebitOperation { account: 7, amount: 60 })?;
    for emitted in affordable.commit().await?.wait_until_journaled().await? {
        bus.wait_for_tasks(&emitted).await?;
    }

    // The first debit would succeed and the second would not, so both are rolled back, and no event is emitted.
    let mut unaffordable = bus.unit_of_work();
    unaffordable.register(DebitOperation { account: 7, amount: 30 })?;
    unaffordable.register(DebitOperation { account: 7, amount: 30 })?;
    match unaffordable.commit().await {
        Ok(_) => println!("unexpected: the account had enough"),
        Err(error) => println!(
            "{error}: {}",
            std::error::Error::source(&error).map_or_else(String::new, |e| e.to_string())
        ),
    }
    bus.stop().await;
    Ok(())
}
