import { attributeRoutes } from './attributes/routes.ts'
import { consentRoutes } from './consents/routes.ts'
import { createGate } from './http/overload/gate.ts'
import { createResponseMemory } from './http/overload/response-memory.ts'
import { createPipeline, type Services } from './http/pipeline/pipeline.ts'
import type { Route } from './http/pipeline/route.ts'
import { createNotFoundEndpoint, registerRoutes } from './http/pipeline/route-table.ts'
import { createRouter } from './http/pipeline/router.ts'
import { healthRows, registerHealthRoutes } from './http/routes/health.ts'
import { registerTokenRoute, tokenRow } from './http/routes/oauth.ts'
import { type App, createServer } from './http/server/server.ts'
import { metricsRow, serveMetrics } from './instruments/serve.ts'
import { documentOf, type OpenApiDocument } from './openapi/document.ts'
import { documentRow, serveDocument } from './openapi/serve.ts'
import { organizationRoutes } from './organizations/routes.ts'
import { peopleRoutes } from './people/routes.ts'
import { person } from './people/schema.ts'
import { recordRoutes } from './records/routes.ts'
import { record } from './records/schema.ts'
import { schemaRoutes } from './schema/routes.ts'
import { stackRoutes } from './stacks/routes.ts'

const answers = { person, record }

/** The rooms of the house, in the order of the documentation. */
export function routeTable({ config }: Pick<Services, 'config'>): Route[] {
  return [
    ...peopleRoutes(config, answers),
    ...recordRoutes(config, answers),
    ...stackRoutes(),
    ...attributeRoutes(),
    ...consentRoutes(),
    ...schemaRoutes(),
    ...organizationRoutes(),
  ]
}

const info = {
  title: 'kith',
  version: 'v1',
  summary: 'A self-hosted contact and record data service.',
  description:
    'JSON in, JSON out. A body comes as `application/json`, or as query parameters in bracket form where there is none. ' +
    'Every address below `/v1` takes a bearer token: paste one from `kith token` under "Authorize".',
}

/** The resources, each a tag of the rows. */
const tags = [
  { name: 'People', description: 'Contacts, with their profile, consents, attributes and relationships.' },
  { name: 'Records', description: 'Objects and happenings in Item and Event stacks.' },
  { name: 'Stacks', description: 'What kinds of record there are.' },
  { name: 'Attributes', description: 'Custom fields and relationships, with their types.' },
  { name: 'Consent types', description: 'The purposes that people grant or refuse.' },
  { name: 'Schema', description: 'Everything that the organization has declared.' },
  { name: 'Organization', description: 'The tenant that the token belongs to.' },
  { name: 'System', description: 'The service itself; no token is wanted.' },
]

/** The OpenAPI 3.1 document of all there is. */
export function openApiDocument(house: Pick<Services, 'config'>): OpenApiDocument {
  return documentOf({
    info,
    tags,
    rows: routeTable(house),
    openRows: [...healthRows, metricsRow, tokenRow, documentRow],
  })
}

/** The whole service on one server, listening to nothing yet. */
export function createApp(house: Services): App {
  const { config, authenticator, drain, logger } = house
  const { observer } = house.instruments
  const report = (told: object) => logger.warn(told, 'more came than could be served')
  const gate = createGate({
    config,
    recall: authenticator.cachedOrganizationId,
    shouldClose: () => !drain.isAccepting(),
    observer,
    report,
  })
  const router = createRouter()
  const responseMemory = createResponseMemory(config.limits.answerBytes)
  registerRoutes(router, { ...house, responseMemory }, routeTable(house))
  registerHealthRoutes(router, house)
  serveMetrics(router, house.instruments)
  registerTokenRoute(router, house)
  serveDocument(router, openApiDocument(house))
  const app = createServer(house, createPipeline({ ...house, gate }, router, createNotFoundEndpoint(house, router)))
  gate.guard(app.server)
  return app
}
