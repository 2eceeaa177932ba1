import { transferEndpoints } from '../bulk/endpoints.ts'
import { consentEndpoints } from '../consents/endpoints.ts'
import { entityEndpoints } from '../entities/endpoints.ts'
import type { EntityKind } from '../entities/entity-kind.ts'
import { historyEndpoints } from '../entities/past/history.ts'
import { duplicatesEndpoints, lookupEndpoints, mergeEndpoints } from '../identity/endpoints.ts'
import { bulkEndpoints } from '../jobs/endpoints.ts'
import { receiptEndpoints } from '../ledger/receipts.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import type { Config } from '../process/config.ts'
import { type EntitySchemas, readingEndpoints } from '../queries/pages/endpoints.ts'
import { dossierEndpoints } from '../rights/dossier.ts'
import type { Route } from '../route/route.ts'
import { searchEndpoints } from '../search/endpoints.ts'
import { person, personBody } from './schema.ts'

/** The route table of people. `schemas` are the response schemas of both kinds of entity. */
export function peopleRoutes(config: Config, schemas: EntitySchemas): Route[] {
  const { limits, ledgerOrigin } = config
  const people: EntityKind = {
    noun: 'person',
    singular: 'Person',
    plural: 'People',
    path: '/v1/people',
    params: {},
    identifier: {
      name: 'uuid',
      kind: 'uuid',
      field: 'id',
      toUuid: text => text.toLowerCase(),
      fromUuid: uuid => uuid,
    },
    reads: 'people:read',
    writes: 'people:write',
    body: personBody(limits),
    answer: person,
    // The contract's PATCH documents only 200, 400 and 500. There, a missing person is a 500, and a taken external
    // identifier a 400.
    patchStatuses: { not_found: 500, duplicate_entry: 400 },
    stackOf: () => peopleStackId,
  }
  return [
    ...entityEndpoints(people, limits),
    ...readingEndpoints(people, schemas, limits),
    ...lookupEndpoints({ limits }, person),
    ...searchEndpoints(people),
    ...mergeEndpoints({ limits }, person),
    ...transferEndpoints(people),
    ...bulkEndpoints(people),
    ...historyEndpoints(people),
    ...consentEndpoints(config),
    ...receiptEndpoints({ ledgerOrigin }),
    ...dossierEndpoints(),
    ...duplicatesEndpoints({ limits }),
  ]
}
