//! The privileges of the role on the schema, and how to grant missing ones.

use tokio_postgres::{Error, Row};

use crate::error::quote_identifier;

/// The privileges of a role, as `server/read_privileges` returns them.
#[derive(Debug)]
pub(crate) struct RolePrivileges {
    pub(crate) role: String,
    /// The role may create the schema.
    can_create_schema: bool,
    /// The owner of the schema, if it exists.
    schema_owner: Option<String>,
    /// The role may use the schema, and create tables in it.
    can_use_schema: bool,
    /// Number of tables and functions that the role does not own.
    unowned_table_and_function_count: i64,
    /// Membership in the owner role would grant all missing privileges, and no superuser's.
    owner_membership_suffices: bool,
}

impl RolePrivileges {
    pub(crate) fn from_row(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            role: row.try_get(0)?,
            can_create_schema: row.try_get(1)?,
            schema_owner: row.try_get(2)?,
            can_use_schema: row.try_get(3)?,
            unowned_table_and_function_count: row.try_get(4)?,
            owner_membership_suffices: row.try_get(5)?,
        })
    }

    /// Describes the missing privileges, if any. A node that lacks some may seem to work until it adds or drops a
    /// partition.
    pub(crate) fn describe_missing(&self) -> Option<String> {
        let Self { role, unowned_table_and_function_count: unowned_object_count, .. } = self;
        match (&self.schema_owner, self.can_use_schema) {
            (None, _) if self.can_create_schema => None,
            (None, _) => Some(format!("{role} may not create the schema pointsman")),
            (Some(_), false) => {
                Some(format!("{role} may not use the schema pointsman, or not create tables in it"))
            }
            (Some(_), true) if *unowned_object_count == 0 => None,
            (Some(_), true) => Some(format!(
                "{unowned_object_count} tables and functions of the schema pointsman are not owned by {role}"
            )),
        }
    }

    /// Describes the privileges of a role that lacks none.
    pub(crate) fn describe_sufficient(&self) -> String {
        match self.schema_owner {
            None => format!("{} may create the schema pointsman", self.role),
            Some(_) => format!("{} has all required privileges", self.role),
        }
    }

    /// Returns the statement that grants the missing privileges.
    pub(crate) fn grant_statement(&self, database: &str) -> String {
        let role = quote_identifier(&self.role);
        match &self.schema_owner {
            None => format!("GRANT CREATE ON DATABASE {} TO {role}", quote_identifier(database)),
            Some(schema_owner) if self.owner_membership_suffices && *schema_owner != self.role => {
                format!("GRANT {} TO {role}", quote_identifier(schema_owner))
            }
            Some(_) => change_owner_statement(&role),
        }
    }
}

/// Returns the statement that makes a role the owner of the schema and all its objects. Sequences of columns follow
/// their tables.
fn change_owner_statement(role: &str) -> String {
    let literal = role.replace('\'', "''");
    format!(
        "DO $do$ DECLARE it text;BEGIN FOR it IN SELECT 'SCHEMA pointsman' \
         UNION ALL SELECT 'TABLE ' || c.oid::regclass FROM pg_class c \
         WHERE c.relnamespace = 'pointsman'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S') AND NOT EXISTS (SELECT \
         FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i') AND \
         c.relkind = 'S') \
         UNION ALL SELECT 'ROUTINE ' || oid::regprocedure FROM pg_proc WHERE pronamespace = 'pointsman'::regnamespace \
         UNION ALL SELECT 'TYPE ' || oid::regtype FROM pg_type WHERE typnamespace = 'pointsman'::regnamespace AND \
         typtype = 'e' LOOP EXECUTE 'ALTER ' || it || ' OWNER TO {literal}';END LOOP;END $do$"
    )
}
