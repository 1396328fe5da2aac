//! What our role may do in the database, and what to do about what it may not.

use tokio_postgres::{Error, Row};

use crate::error::quoted;

/// What `open/rights.sql` tells.
#[derive(Debug)]
pub(crate) struct Rights {
    pub(crate) role: String,
    /// It may make the schema.
    may_make: bool,
    /// Whose the schema is, if there is one.
    owner: Option<String>,
    /// It may use the schema, and make tables in it.
    usable: bool,
    /// So many tables and functions are others'.
    foreign: i64,
    /// Acting in the owner's name gives it all that is missing, and no more than that.
    lendable: bool,
}

impl Rights {
    pub(crate) fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            role: row.try_get(0)?,
            may_make: row.try_get(1)?,
            owner: row.try_get(2)?,
            usable: row.try_get(3)?,
            foreign: row.try_get(4)?,
            lendable: row.try_get(5)?,
        })
    }

    /// What is wrong, if anything is. Whoever lacks these rights may get on for a while: slices are made and dropped later.
    pub(crate) fn lacking(&self) -> Option<String> {
        let Self { role, foreign, .. } = self;
        match (&self.owner, self.usable) {
            (None, _) if self.may_make => None,
            (None, _) => Some(format!("{role} may not make the schema pointsman")),
            (Some(_), false) => {
                Some(format!("{role} may not use the schema pointsman, or not make tables in it"))
            }
            (Some(_), true) if *foreign == 0 => None,
            (Some(_), true) => {
                Some(format!("{foreign} tables and functions of the schema pointsman are not {role}'s"))
            }
        }
    }

    pub(crate) fn enough(&self) -> String {
        match self.owner {
            None => format!("{} may make the schema pointsman", self.role),
            Some(_) => format!("{} may do all that is needed", self.role),
        }
    }

    /// The statement that gives the role what it needs.
    pub(crate) fn remedy(&self, database: &str) -> String {
        let role = quoted(&self.role);
        match &self.owner {
            None => format!("GRANT CREATE ON DATABASE {} TO {role}", quoted(database)),
            Some(owner) if self.lendable && *owner != self.role => {
                format!("GRANT {} TO {role}", quoted(owner))
            }
            Some(_) => hand_over(&role),
        }
    }
}

/// Gives the schema and all that is in it to a role. Sequences of columns follow their tables.
fn hand_over(role: &str) -> String {
    let to = role.replace('\'', "''");
    format!(
        "DO $do$ DECLARE it text;BEGIN FOR it IN SELECT 'SCHEMA pointsman' \
         UNION ALL SELECT 'TABLE ' || c.oid::regclass FROM pg_class c \
         WHERE c.relnamespace = 'pointsman'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S') AND NOT EXISTS (SELECT \
         FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i') AND \
         c.relkind = 'S') \
         UNION ALL SELECT 'ROUTINE ' || oid::regprocedure FROM pg_proc WHERE pronamespace = 'pointsman'::regnamespace \
         UNION ALL SELECT 'TYPE ' || oid::regtype FROM pg_type WHERE typnamespace = 'pointsman'::regnamespace AND \
         typtype = 'e' LOOP EXECUTE 'ALTER ' || it || ' OWNER TO {to}';END LOOP;END $do$"
    )
}
