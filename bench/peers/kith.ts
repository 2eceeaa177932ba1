import type { BenchTarget } from '../run.ts'
import type { Peer, RunningPeer } from './peer.ts'

/** The same operations for kith. The same script sends and checks them as for a peer. */
export const requests: Peer['requests'] = {
  patch: {
    method: 'PATCH',
    target: '/v1/people/p@person',
    body: '{"first_name":"F@word","last_name":"L@word","language":"en","attribute_values":{"city":"c@word","score":@word}}',
    expected: '"data":true',
  },
  get: { method: 'GET', target: '/v1/people/p@person', expected: '"external_id":"p' },
}

/** The service as a peer. Its `stop` does nothing: the caller owns the service. */
export function createKithPeer({ service: { address, token } }: BenchTarget): RunningPeer {
  return {
    address,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    stop: async () => {},
  }
}
