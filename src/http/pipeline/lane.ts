import type { Lane } from '../../db/connection-shares.ts'
import { isWriting } from '../../scopes.ts'
import type { Route } from './route.ts'

/**
 * The lane of an endpoint's database use. A GET reads one entity or definitions, and a stream uses the pool only to
 * start. Any other read is a page.
 */
export function laneOf({ method, scope, streams }: Route): Lane {
  if (isWriting(scope, method)) return 'writes'
  return method === 'GET' || streams ? 'reads' : 'pages'
}
