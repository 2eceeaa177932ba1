import type { AccessLog, AccessRequest } from '../../accesses/access-log.ts'
import { storedId } from '../../accesses/batch.ts'
import type { Config } from '../../process/config.ts'
import type { Call } from '../../route/call.ts'
import type { Caller } from '../../route/caller.ts'
import type { HandlerResult } from '../../route/result.ts'
import type { Route } from '../../route/route.ts'
import { maxShownIds, type ShownOfStack } from '../../route/shown.ts'
import { createRefusal, Fault, retryInASecond } from '../../values/errors.ts'
import type { SecurityEvent } from '../../values/security-events.ts'
import { clientAddress } from '../input/request-head.ts'
import type { Exchange } from './exchange.ts'
import { replayedHeader } from './idempotent-handler.ts'

type Recording = { log: AccessLog; exchange: Exchange; config: Config; row: Route; call: Call; isWrite: boolean }

/** While a response in parts is sent, it is recorded about this often, and at its end. */
const partMs = 1_000

/**
 * Records the entities that a response shows or a write has changed, and the security event of the request. Returns the
 * response, which records its parts as they are sent. With a strict log, the response waits until its entries are
 * stored. If that fails, throws a Fault of 503.
 */
export function recordAccess(recording: Recording, result: HandlerResult): HandlerResult | Promise<HandlerResult> {
  const { call } = recording
  const event = storedEvent(recording)
  const storing = event && record(recording, result.status, event)
  if ('stream' in result || 'parts' in result) {
    const { status } = result
    const recorded =
      'stream' in result
        ? { ...result, stream: recordedParts(recording, status, result.stream) }
        : { ...result, parts: recordedParts(recording, status, result.parts) }
    return storing ? storing.then(() => recorded) : recorded
  }
  const isReplayed = result.headers !== undefined && replayedHeader in result.headers && 'json' in result
  const isShown = isReplayed || call.shown.hasMore({ counts: true })
  const replayed = isReplayed ? entitiesIn(result.json) : undefined
  const recorded = isShown ? record(recording, result.status, undefined, replayed) : undefined
  if (!storing && !recorded) return result
  return Promise.all([storing, recorded]).then(
    () => result,
    error => {
      if ('release' in result) result.release?.()
      throw error
    },
  )
}

/** Records that a caller was refused because of its scope or role. */
export function recordRefusal(log: AccessLog, exchange: Exchange, config: Config): void {
  const { caller, request, route = 'unknown', response } = exchange
  if (!caller) return
  const refused = { event: 'access_refused' as const, method: request.method!, route, status: response.statusCode }
  // The response shows no entities, so it does not wait for the log.
  log.record('security', { ...refused, ...callerOf(exchange, caller, config) }, [])?.catch(() => {})
}

/** The members of an entry that describe the caller. */
const callerOf = ({ request, id }: Exchange, { organization, subject, role }: Caller, { behindProxy }: Config) => ({
  organization_id: organization.id,
  subject,
  role: role ?? null,
  ip: clientAddress(request, behindProxy),
  request_id: id,
})

/** The security event of a request whose row has one. A dry run has no event. */
function storedEvent({ row, call }: Recording): SecurityEvent | undefined {
  const body = (call.body ?? {}) as Record<string, unknown>
  if (call.isDryRun || body.dry_run === true) return undefined
  const { securityEvent } = row
  return typeof securityEvent === 'function' ? securityEvent(body) : securityEvent
}

/** Records the entities shown since the last record, or a security event. */
function record(
  recording: Recording,
  status: number,
  event?: SecurityEvent,
  replayed?: ShownOfStack[],
): Promise<void> | undefined {
  const { log, exchange, config, row, call, isWrite } = recording
  const { caller, shown } = call
  const target = event && targetOf(call)
  const { method, path: route } = row
  const request: AccessRequest = { event, target, method, route, status, ...callerOf(exchange, caller, config) }
  const storing = log.record(event ? 'security' : 'access', request, event ? [] : (replayed ?? shown.take(row.follows)))
  return storing?.catch(cause => {
    throw new Fault(isWrite ? unrecordedWrite : unrecordedRead, { cause })
  })
}

const identifier = /"(?:id|record_id)":"([0-9a-f]{24}|[0-9a-f-]{36})"/g

/** The entities in a replayed response of an Idempotency-Key. Their stacks are unknown. */
function entitiesIn(json: string): ShownOfStack[] {
  const found = new Set(Array.from(json.matchAll(identifier), ([, id]) => storedId(id!)))
  const ids = [...found].slice(0, maxShownIds)
  return found.size === 0 ? [] : [{ stack_id: null, ids, count: found.size }]
}

/**
 * The target of a security event: the one that the handler names, or else the last parameter of the path. People are
 * left out, because the log lists them as shown.
 */
function targetOf({ shown, params: { external_id, uuid, ...others } }: Pick<Call, 'params' | 'shown'>) {
  return shown.target ?? Object.values(others).at(-1)
}

/** A stream that follows the log takes hours, so each of its parts is recorded when it is sent. */
async function* recordedParts<Part>(
  recording: Recording,
  status: number,
  parts: AsyncIterable<Part>,
): AsyncGenerator<Part> {
  const { log, row, call } = recording
  const { shown } = call
  let recordedAtMs = performance.now()
  const isDue = () => {
    if (row.follows || performance.now() - recordedAtMs >= partMs) return shown.hasMore({ counts: true })
    return log.isStrict && shown.hasMore({ counts: false })
  }
  try {
    for await (const part of parts) {
      if (isDue()) {
        await record(recording, status)
        recordedAtMs = performance.now()
      }
      yield part
    }
  } finally {
    if (shown.hasMore({ counts: true })) await record(recording, status)
  }
}

const unrecordedRead = createRefusal(
  'operation_failed',
  'The access log cannot be written, so nothing is shown.',
  retryInASecond,
)
const unrecordedWrite = createRefusal(
  'operation_failed',
  'The write was committed, but the access log cannot be written, so its response is not shown.',
  { ...retryInASecond, outcome: 'done' },
)
