type Values = Record<string, unknown>
/** What of a person consents are about. */
export type Answering = { flags: { email: boolean | null; sms: boolean | null }; answers: Map<string, boolean> }

export type Channel = 'email' | 'sms'
/** `channels`: those it is configured for, and whether it is the default of each. */
export type ConsentType = {
  id: number
  active: boolean
  mandatory: boolean
  default_state: boolean
  channels: Map<string, boolean>
}

/** The answers a write gives, by type and channel, and the flags as they come to be. */
export type Given = { answers: Map<string, boolean>; flags: Answering['flags'] }

const channels: Channel[] = ['email', 'sms']

const answerable = (types: ConsentType[], channel: string) =>
  types.filter(type => type.active && !type.mandatory && type.channels.has(channel))

/** What the consent fields of a body come to; undefined where one of them is refused. */
export function answer({ flags, answers: standing }: Answering, body: Values, types: ConsentType[]): Given | undefined {
  const answers = new Map<string, boolean>()
  const next = { ...flags }
  for (const channel of channels) {
    const flag = body[`${channel}_consent`]
    const open = answerable(types, channel)
    if (flag === true) {
      const byDefault = open.find(type => type.channels.get(channel))
      if (!byDefault) return undefined
      answers.set(`${byDefault.id}:${channel}`, true)
    }
    if (flag === false && open.length === 0) next[channel] = false
    if (flag === false) for (const { id } of open) answers.set(`${id}:${channel}`, false)
  }
  const seen = new Set<string>()
  for (const { consent_type_id, channel, state } of (body.consents ?? []) as Values[]) {
    const key = `${consent_type_id}:${channel}`
    if (seen.has(key) || !answerable(types, String(channel)).some(type => type.id === consent_type_id)) return undefined
    seen.add(key)
    answers.set(key, state as boolean)
  }
  for (const channel of channels)
    if ([...answers.keys()].some(key => key.endsWith(channel)))
      next[channel] = answerable(types, channel).some(
        ({ id }) => answers.get(`${id}:${channel}`) ?? standing.get(`${id}:${channel}`),
      )
  return { answers, flags: next }
}

/** The effective consents of a read, without the time of the answer. */
export function consents({ answers }: Pick<Answering, 'answers'>, types: ConsentType[]): Values[] {
  return types
    .filter(type => type.active)
    .flatMap(type =>
      channels
        .filter(channel => type.channels.has(channel))
        .map(channel => {
          const given = answers.get(`${type.id}:${channel}`)
          const subject = { consent_type_id: type.id, channel }
          if (type.mandatory) return { ...subject, state: true, source: 'mandatory' }
          if (given === undefined) return { ...subject, state: type.default_state, source: 'default' }
          return { ...subject, state: given, source: 'answer' }
        }),
    )
}
