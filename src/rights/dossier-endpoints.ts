import { personAddresses } from '../route/person-addresses.ts'
import { type Route, route } from '../route/route.ts'
import { Type } from '../values/json-schema.ts'
import { answerDossier, holdersHeader, pageType } from './dossier.ts'
import { type DossierQuery, dossierLine, dossierQuery } from './dossier-schema.ts'

/** The dossier of a person, by external and by internal identifier. */
export const dossierEndpoints = (): Route[] =>
  personAddresses.map(({ path, params, suffix, by }) =>
    route<DossierQuery>({
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
        'scopes `consents:read`, `changes:read` and `records:read`. With `Accept: text/html` the response is a page for the person, in its ' +
        'language. See docs/rights.md.',
      streams: true,
      query: dossierQuery,
      answer: dossierLine,
      mediaTypes: { 'application/x-ndjson': dossierLine, [pageType]: Type.String({ description: 'The page.' }) },
      successHeaders: {
        [holdersHeader]:
          'Of the page: the internal identifiers of others who had the external identifier, if there are any.',
      },
      securityEvent: 'dossier',
      handle: answerDossier,
    }),
  )
