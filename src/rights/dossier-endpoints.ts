import { personAddresses } from '../route/person-addresses.ts'
import type { Route } from '../route/route.ts'
import { answerDossier } from './dossier.ts'
import { dossierLine } from './dossier-schema.ts'

/** The dossier of a person, by external and by internal identifier. */
export const dossierEndpoints = (): Route[] =>
  personAddresses.map(({ path, params, suffix, by }) => ({
    method: 'GET',
    path: `${path}/dossier`,
    params,
    scope: 'people:read',
    tag: 'People',
    operationId: `getDossier${suffix}`,
    summary: `Read everything that is held about a person${by}`,
    description:
      'Returns one JSON object per line, each with a `type`, as they were at one moment: the profile, the attributes, the consents with ' +
      'their evidence and texts, the relationships in both directions with the linked records, the changes, and what was sent to ' +
      'webhooks. The last line has the type `end` and counts the others, so that a stream that was cut off is noticed. A deleted ' +
      'person has a dossier too, and identifiers of people who were merged lead to that of the survivor. The token also needs the ' +
      'scopes `consents:read`, `changes:read` and `records:read`. See docs/rights.md.',
    streams: true,
    answer: dossierLine,
    securityEvent: 'dossier',
    handle: answerDossier,
  }))
