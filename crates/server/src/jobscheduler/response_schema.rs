//! The possible responses, for the OpenAPI document. `return` and the path decide which one a request gets.

use pointsman_api::EventSeq;
use pointsman_core::order::OrderStatistics;
use utoipa::openapi::schema::{KnownFormat, SchemaFormat, Type};
use utoipa::openapi::{AllOfBuilder, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::order_overview::{OrderOverview, Orders};

type Schemas = Vec<(String, RefOr<Schema>)>;

/// The schema of the response to a request for orders: one of all possible responses.
pub(crate) struct OrderAnswer;

impl PartialSchema for OrderAnswer {
    fn schema() -> RefOr<Schema> {
        let one_of = OneOfBuilder::new()
            .item(Ref::from_schema_name(Orders::name()))
            .item(add_event_id_to_schema(Ref::from_schema_name(OrderOverview::name())))
            .item(add_event_id_to_schema(Ref::from_schema_name(STATISTICS_SCHEMA_NAME)))
            .item(Ref::from_schema_name(EventSeq::name()))
            .description(Some("Depending on the request: orders, one order, statistics, or events"));
        Schema::from(one_of.build()).into()
    }
}

impl ToSchema for OrderAnswer {
    fn schemas(schemas: &mut Schemas) {
        collect_schema::<Orders>(schemas);
        collect_schema::<OrderOverview>(schemas);
        collect_schema::<EventSeq>(schemas);
        schemas.push((STATISTICS_SCHEMA_NAME.into(), statistics_schema().into()));
    }
}

fn collect_schema<T: ToSchema>(schemas: &mut Schemas) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

const STATISTICS_SCHEMA_NAME: &str = "OrderStatistics";

/// The schema of the statistics: one number per serialized member.
fn statistics_schema() -> Schema {
    let example = serde_json::to_value(OrderStatistics::default()).unwrap_or_default();
    let names = example.as_object().into_iter().flat_map(|numbers| numbers.keys());
    let empty_schema = ObjectBuilder::new().description(Some("Numbers of orders by state"));
    names.fold(empty_schema, |object, name| object.property(name, integer_schema()).required(name)).into()
}

/// Adds the event id at which a value is consistent to its schema.
fn add_event_id_to_schema(schema_ref: Ref) -> Schema {
    let event_id_schema = ObjectBuilder::new().property("eventId", integer_schema()).required("eventId");
    AllOfBuilder::new().item(schema_ref).item(event_id_schema).build().into()
}

fn integer_schema() -> ObjectBuilder {
    let format = SchemaFormat::KnownFormat(KnownFormat::Int64);
    ObjectBuilder::new().schema_type(Type::Integer).format(Some(format)).minimum(Some(0))
}
