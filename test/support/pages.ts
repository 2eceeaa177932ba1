import type { Organization, Service } from './service.ts'

/** A page as a client without scripts receives it. */
export type ReceivedPage = { status: number; headers: Headers; text: string }

/** A request for a page. A form is sent as browsers do. */
export type PageRequest = {
  method?: string
  form?: Record<string, string | string[]>
  headers?: Record<string, string>
  body?: string
}

/** Requests a page, and checks the promises that hold for all of them. */
export async function requestPage(
  url: string,
  { method, form, headers = {}, body }: PageRequest = {},
): Promise<ReceivedPage> {
  const formBody =
    form &&
    new URLSearchParams(
      Object.entries(form).flatMap(([name, values]) => [values].flat().map((value): [string, string] => [name, value])),
    )
  const response = await fetch(url, {
    method: method ?? (form || body !== undefined ? 'POST' : 'GET'),
    headers,
    body: formBody ?? body ?? null,
    redirect: 'manual',
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** The values of a page's form: its hidden fields, and the values of the checked boxes. */
export function formOf({ text }: ReceivedPage): { shown: string; agree: string[] } {
  const inputs = [...text.matchAll(/<input [^>]*>/g)].map(([input]) => input)
  const readValue = (input: string) => /value="([^"]*)"/.exec(input)![1]!
  const [shown = ''] = inputs.filter(input => input.includes('name="shown"')).map(readValue)
  return { shown, agree: inputs.filter(input => input.includes(' checked')).map(readValue) }
}

/** The links of a person of an organization. */
export async function linksOf({ send }: Pick<Organization, 'send'>, person: string, body: object = {}) {
  const reply = await send('POST', `/v1/people/${person}/consent-links`, body)
  if (reply.status !== 200) throw new Error(JSON.stringify(reply.body))
  return reply.body.data as { preferences_url: string; unsubscribe_url: string; confirm_url?: string }
}

export type StoredAnswer = {
  consent_type_id: number
  channel: string
  state: boolean
  previous_state: boolean | null
  actor: string
  evidence: Record<string, unknown> | null
  pending: boolean
}

/** The answers of a person in the consent history, in the order of the writes. */
export const storedAnswers = (service: Service, { id }: Organization, person_id: string): Promise<StoredAnswer[]> =>
  service.sql(
    `select consent_type_id, channel, state, previous_state, actor, evidence, pending from consent_history
     where organization_id = $1 and person_id = $2 order by version, consent_type_id, channel`,
    [id, person_id],
  )
