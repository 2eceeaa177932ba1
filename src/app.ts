import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { attributeRoutes } from './attributes/routes.ts'
import { consentRoutes } from './consents/routes.ts'
import { type House, serveRoutes } from './http/pipeline.ts'
import type { Route } from './http/route.ts'
import { createServer } from './http/server.ts'
import { serveSystem } from './http/system.ts'
import { peopleRoutes } from './people/routes.ts'
import { recordRoutes } from './records/routes.ts'
import { stackRoutes } from './stacks/routes.ts'

export type AppOptions = House & {
  logger: FastifyBaseLogger
  /** Whether the process takes new work: false while it drains. */
  accepting: () => boolean
}

/** The rooms of the house, in the order of the documentation. */
export function routeTable({ config }: Pick<House, 'config'>): Route[] {
  return [...peopleRoutes(config), ...recordRoutes(config), ...stackRoutes(), ...attributeRoutes(), ...consentRoutes()]
}

/** The whole service on one Fastify instance, listening to nothing yet. */
export function createApp(options: AppOptions): FastifyInstance {
  const server = createServer(options.config, options.logger)
  serveRoutes(server, options, routeTable(options))
  serveSystem(server, options, options.accepting)
  return server
}
