export type * from './src/access.ts'
export { type EntityAddress, idOf } from './src/address.ts'
export type { BatchItem, BatchResult, Operation } from './src/batch.ts'
export type * from './src/changes.ts'
export { type Client, createClient, type Readiness, type SearchHitOf, type StackEntities } from './src/client.ts'
export type * from './src/consents.ts'
export type { ClientCredentials } from './src/credentials.ts'
export type * from './src/definitions.ts'
export type * from './src/deliverability.ts'
export type { Endpoints } from './src/endpoints.ts'
export type * from './src/entities.ts'
export type * from './src/entity-reads.ts'
export type * from './src/erasures.ts'
export { isKithError, KithConnectionError, KithError, KithTimeoutError } from './src/errors.ts'
export type { Condition, ConsentCondition, Filter, FilterOf, RelativeTime } from './src/filter.ts'
export {
  type ImportAnswer,
  type ImportCounts,
  type ImportOptions,
  type ImportRefusal,
  type ImportRefusedLines,
  type ImportResult,
  KithImportError,
} from './src/import.ts'
export type { ImportEndpoints, ImportListOptions } from './src/imports.ts'
export type * from './src/jobs.ts'
export type * from './src/ledger.ts'
export type * from './src/lifetimes.ts'
export type { Listing, Page, PageOptions } from './src/listing.ts'
export type * from './src/operations.ts'
export type * from './src/options.ts'
export type {
  AnySchema,
  AttributeShape,
  BodyOf,
  EntityOf,
  Labels,
  LinkEdit,
  Name,
  NewBodyOf,
  OrganizationSchema,
  PatchOf,
  PatchValues,
  ReadValues,
  WriteValues,
} from './src/organization.ts'
export type * from './src/people.ts'
export { isTemporary } from './src/retry.ts'
export type * from './src/segments.ts'
export type {
  FieldName,
  ItemOf,
  LabeledOf,
  RelationshipKey,
  Selection,
  Sort,
  SortField,
  SortMeasure,
} from './src/selection.ts'
export type * from './src/sessions.ts'
export type { Endpoint, RequestOf, RequestOptions } from './src/transport.ts'
export * from './src/verify-receipt.ts'
export * from './src/verify-webhook.ts'
export * from './src/vocabulary.ts'
export type * from './src/wire.ts'
export { writable } from './src/writable.ts'
