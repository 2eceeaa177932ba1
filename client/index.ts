export type {
  AccessEndpoints,
  AccessLogOptions,
  ApiClientEndpoints,
  ApiClientListOptions,
  RoleEndpoints,
} from './src/access.ts'
export { type EntityAddress, idOf } from './src/address.ts'
export type { BatchItem, BatchResult, Operation } from './src/batch.ts'
export type {
  ChangeEndpoints,
  ChangeFilter,
  ChangeListOptions,
  ChangePosition,
  ChangeStream,
  FollowOptions,
} from './src/changes.ts'
export { type Client, createClient, type Readiness, type SearchHitOf, type StackEntities } from './src/client.ts'
export type {
  ConsentEndpoints,
  ConsentHistoryOptions,
  ContactManyOptions,
  ContactOptions,
  ContactPurpose,
  ReceiptOptions,
} from './src/consents.ts'
export type { ClientCredentials } from './src/credentials.ts'
export type {
  AttributeEndpoints,
  AttributeRule,
  DefinitionEndpoints,
  ProposedRules,
  SchemaEndpoints,
  ViolationOptions,
} from './src/definitions.ts'
export type { DeliverabilityEndpoints, SuppressionListOptions } from './src/deliverability.ts'
export type { Endpoints } from './src/endpoints.ts'
export type { BatchOptions, BulkRequest, Entities } from './src/entities.ts'
export type {
  AggregateQuery,
  CountOptions,
  EntityReads,
  ExportOptions,
  FilterOptions,
  GetOptions,
  HistoryOptions,
  ListOptions,
  RelatedOptions,
  SearchOptions,
} from './src/entity-reads.ts'
export type { ErasureEndpoints, ErasureListOptions } from './src/erasures.ts'
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
export type { FollowJobOptions, JobEndpoints, JobListOptions } from './src/jobs.ts'
export type { LedgerCheckpoint, LedgerEndpoints, LedgerKey } from './src/ledger.ts'
export type {
  HoldEndpoints,
  LifetimeOptions,
  RetentionPreviewPerson,
  RetentionRuleEndpoints,
} from './src/lifetimes.ts'
export type { Listing, Page, PageOptions } from './src/listing.ts'
export type { OperationsEndpoints } from './src/operations.ts'
export type {
  Attempt,
  Call,
  CallOptions,
  ClientOptions,
  Updated,
  UpdateOptions,
  WriteOptions,
  Written,
} from './src/options.ts'
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
export type {
  DossierPageOptions,
  DuplicatesOptions,
  ErasureOptions,
  ErasureReason,
  LookupKey,
  Match,
  MatchKind,
  Merged,
  MergeFrom,
  MergeKeep,
  MergeOptions,
  MergeWith,
  People,
  PeopleOperation,
  PeopleSetAside,
  Unmerged,
} from './src/people.ts'
export { isTemporary } from './src/retry.ts'
export type { SegmentEndpoints, SegmentFilterOptions, SegmentOptions, SegmentPeopleOptions } from './src/segments.ts'
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
export type { SessionEndpoints } from './src/sessions.ts'
export type { Endpoint, RequestOf, RequestOptions } from './src/transport.ts'
export { ReceiptError, type VerifiedReceipt, type VerifyReceiptOptions, verifyReceipt } from './src/verify-receipt.ts'
export {
  type ChangeIds,
  type Confirmation,
  verifyWebhook,
  type WebhookEvent,
  type WebhookHeaders,
  WebhookVerificationError,
} from './src/verify-webhook.ts'
export * from './src/vocabulary.ts'
export type * from './src/wire.ts'
export { writable } from './src/writable.ts'
