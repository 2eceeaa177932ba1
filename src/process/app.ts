import { registerConsole } from '../access/console.ts'
import { registerAccountRoutes } from '../access/console-accounts.ts'
import { registerSessionRoutes, registerSignInMethods } from '../access/console-session.ts'
import { registerTokenRoute, tokenRow } from '../access/oauth.ts'
import { accessRoutes } from '../access/routes.ts'
import { accessLogRoutes } from '../accesses/routes.ts'
import { serveAssistants } from '../assistants/serve.ts'
import { attributeRoutes } from '../attributes/routes.ts'
import { importRoutes } from '../bulk/routes.ts'
import { changeRoutes } from '../changes/routes.ts'
import { linkPages, linkRoutes } from '../consent-pages/routes.ts'
import { consentRoutes } from '../consents/routes.ts'
import { readsOfPrimary } from '../db/standby/reads.ts'
import { deliverabilityHooks, deliverabilityRoutes, incomingRow } from '../deliverability/routes.ts'
import { createGate } from '../http/overload/gate.ts'
import { registerHooks, registerPages } from '../http/pipeline/pages.ts'
import { createPipeline } from '../http/pipeline/pipeline.ts'
import { createRouter, registerRoutes } from '../http/pipeline/router.ts'
import type { Services } from '../http/pipeline/services.ts'
import { type App, createServer } from '../http/server/server.ts'
import { metricsRow, serveMetrics } from '../instruments/serve.ts'
import { jobRoutes } from '../jobs/routes.ts'
import { ledgerRoutes } from '../ledger/routes.ts'
import { observedRoutes } from '../observed/routes.ts'
import { asyncDocumentOf } from '../openapi/asyncapi.ts'
import { documentOf, type OpenApiDocument } from '../openapi/document.ts'
import { asyncDocumentRow, documentRow, serveDocument } from '../openapi/serve.ts'
import { healthRows, registerHealthRoutes } from '../operations/health.ts'
import { type OperationServices, operationRoutes } from '../operations/routes.ts'
import { registerSecurityText } from '../operations/security-txt.ts'
import { organizationRoutes } from '../organizations/routes.ts'
import { peopleRoutes } from '../people/routes.ts'
import { person } from '../people/schema.ts'
import { recordRoutes } from '../records/routes.ts'
import { record } from '../records/schema.ts'
import { accessesEndpoints } from '../rights/accesses.ts'
import { erasureRoutes } from '../rights/erasure/erasure-routes.ts'
import { holdRoutes } from '../rights/holds/routes.ts'
import { retentionRuleRoutes } from '../rights/lifetimes/routes.ts'
import { roleRoutes } from '../roles/routes.ts'
import type { Route } from '../route/route.ts'
import { schemaRoutes } from '../schema/routes.ts'
import { searchRoutes } from '../search/routes.ts'
import { segmentRoutes } from '../segments/routes.ts'
import { findSegments } from '../segments/segments.ts'
import { stackRoutes } from '../stacks/routes.ts'
import { webhookHeaders, webhookMessages } from '../webhooks/messages.ts'
import { webhookRoutes } from '../webhooks/routes.ts'
import { FairPool } from './fair-pool.ts'

const responses = { person, record }

/** The route table of all modules, in the order of the documentation. */
export function routeTable(services: OperationServices): Route[] {
  const { config } = services
  return [
    ...peopleRoutes(config, responses),
    ...erasureRoutes(config),
    ...accessesEndpoints(),
    ...retentionRuleRoutes(),
    ...holdRoutes(),
    ...linkRoutes(config),
    ...recordRoutes(config, responses),
    ...searchRoutes(responses),
    ...stackRoutes(),
    ...attributeRoutes(config.limits),
    ...observedRoutes(),
    ...consentRoutes(),
    ...deliverabilityRoutes(),
    ...schemaRoutes(),
    ...organizationRoutes(),
    ...segmentRoutes(config, responses),
    ...changeRoutes(findSegments),
    ...importRoutes(),
    ...jobRoutes(),
    ...webhookRoutes(config),
    ...ledgerRoutes(config),
    ...accessRoutes(),
    ...accessLogRoutes(),
    ...roleRoutes(),
    ...operationRoutes(services),
  ]
}

/** The maximum number of requests of an organization whose work runs. 64 at a time have the throughput of 500. */
const maxRunning = 64

const info = {
  title: 'kith',
  version: 'v1',
  summary: 'A self-hosted contact and record data service.',
  description:
    'Requests and responses are JSON. A body is `application/json`, or query parameters in bracket form if there is none. ' +
    'Every path below `/v1` needs a bearer token: paste one from `kith token` under "Authorize". ' +
    '[/asyncapi.json](/asyncapi.json) describes webhooks and streams.',
}

/** The tags of the route table, one for each resource. */
const tags = [
  { name: 'People', description: 'Contacts with their profile, consents, attributes and relationships.' },
  { name: 'Records', description: 'Objects in Item stacks and events in Event stacks.' },
  { name: 'Search', description: 'People and records in one list.' },
  { name: 'Stacks', description: 'The kinds of records.' },
  { name: 'Attributes', description: 'Custom fields and relationships, with their types.' },
  { name: 'Consent types', description: 'The purposes that people grant or refuse.' },
  { name: 'Consents', description: 'Numbers of the answers of all people.' },
  { name: 'Deliverability', description: 'What mail providers tell of addresses, and which are suppressed.' },
  { name: 'Schema', description: 'Everything that the organization has declared.' },
  { name: 'Segments', description: 'Named filters on people.' },
  { name: 'Lifetimes', description: 'Rules that erase or delete people after a time, and legal holds.' },
  { name: 'Organization', description: 'The tenant that the token belongs to.' },
  { name: 'Changes', description: 'Every change of the organization, in order: the change log.' },
  { name: 'Jobs', description: 'Changes of many people or records at once, which the service makes in small sets.' },
  { name: 'Webhooks', description: 'Where kith sends changes: signed, in order, until they arrive.' },
  { name: 'Ledger', description: 'The transparency log of all consent answers: sealed, signed and provable.' },
  {
    name: 'Access',
    description:
      'Clients, tokens, the keys that sign them, the accounts and sessions of the console, and the access log.',
  },
  { name: 'Roles', description: 'What clients, tokens and sessions may do, and which fields they may read and write.' },
  { name: 'Operations', description: 'What the operator of the service sees: its checks and its metrics.' },
  { name: 'System', description: 'The service itself. These endpoints need no token.' },
]

/** The OpenAPI 3.1 document of all endpoints. */
export function openApiDocument(services: Pick<Services, 'config'>): OpenApiDocument {
  return documentOf({
    info,
    tags,
    rows: routeTable(services),
    openRows: [...healthRows, metricsRow, tokenRow, incomingRow, documentRow, asyncDocumentRow],
  })
}

/** The AsyncAPI 3.0 document of webhooks and streams. */
export const asyncApiDocument = (services: Pick<Services, 'config'>) =>
  asyncDocumentOf({
    info: {
      title: info.title,
      version: info.version,
      description:
        'What kith sends by itself or piece by piece: webhooks and streams. /openapi.json describes the requests.',
    },
    rows: routeTable(services),
    webhooks: { headers: webhookHeaders, types: webhookMessages },
  })

/** Creates the whole service on one server, which does not listen yet. */
export function createApp(given: Omit<Services, 'reads'> & Partial<Pick<Services, 'reads'>>): App {
  const services: Services = { ...given, reads: given.reads ?? readsOfPrimary(given.db) }
  const { config, authenticator, drain, logger } = services
  const { observer } = services.instruments
  const report = (counts: object) => logger.warn(counts, 'the service is overloaded and refused requests')
  const shouldClose = () => !drain.isAccepting()
  const gate = createGate({ config, authenticator, shouldClose, observer, report })
  const router = createRouter()
  const responseMemory = new FairPool({ max: config.limits.answerBytes, leavesRoom: true })
  const running = new FairPool({ share: maxRunning })
  registerRoutes(router, config, routeTable(services))
  registerHealthRoutes(router, services)
  registerSecurityText(router, config)
  serveMetrics(router, services.instruments)
  registerTokenRoute(router, services)
  registerSessionRoutes(router, services)
  registerAccountRoutes(router, services)
  registerSignInMethods(router, services)
  registerPages(router, services, linkPages(config))
  registerHooks(router, services, deliverabilityHooks())
  registerConsole(router, config)
  serveDocument(router, { openApi: () => openApiDocument(services), asyncApi: () => asyncApiDocument(services) })
  const app = createServer(services, gate, createPipeline({ ...services, responseMemory, running }, gate, router))
  serveAssistants(router, services, app.connect)
  return app
}
