//! The cron evaluator against slower and independent ways to the same answer.

mod croner;
mod generate;
mod oracle;
mod policy;
mod properties;
