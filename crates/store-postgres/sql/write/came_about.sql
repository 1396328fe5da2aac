-- Whether a transaction was committed. One that this server never began is another's, whose contents were restored here.
SELECT coalesce($1::text::xid8 < pg_snapshot_xmax(pg_current_snapshot()) AND pg_xact_status($1::text::xid8) = 'committed',
                false)
