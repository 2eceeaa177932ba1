import { clientAddress } from '../http/input/request-head.ts'
import type { Exchange } from '../http/pipeline/exchange.ts'
import type { Services } from '../http/pipeline/services.ts'
import { findOrganization } from '../organizations/organizations.ts'
import type { SecurityEvent } from '../values/security-events.ts'

type SignIn = { event: SecurityEvent; organization: string | undefined; subject: string; status: number }

/**
 * Returns a function that records sign-ins in the access log. An attempt without an existing organization belongs to no
 * access log. The log of the process and the metrics have it.
 */
export function createSignInLog({ accessLog, db, config, logger }: Services) {
  return async (exchange: Exchange, { event, organization: key, subject, status }: SignIn): Promise<void> => {
    const { request, route = 'unknown', id: request_id } = exchange
    if (!accessLog || key === undefined) return
    try {
      const organization = await findOrganization(db, key)
      if (!organization) return
      const context = { event, subject, role: null, method: request.method!, route, status }
      const ip = clientAddress(request, config.behindProxy)
      await accessLog.record('security', { organization_id: organization.id, ...context, ip, request_id }, [])
    } catch (error) {
      logger.warn({ request_id, fault: (error as Error).name }, 'a sign-in is missing in the access log')
    }
  }
}
