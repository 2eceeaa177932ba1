type Values = Record<string, unknown>
/** The consent flags of a person, and the answers by consent type and channel. */
export type ConsentState = { flags: { email: boolean | null; sms: boolean | null }; answers: Map<string, boolean> }

export type Channel = 'email' | 'sms'
/** A consent type. `channels` maps each configured channel to whether the type is its default. */
export type ConsentType = {
  id: number
  active: boolean
  mandatory: boolean
  default_state: boolean
  channels: Map<string, boolean>
}

/** The answers that a write gives, by type and channel, and the resulting flags. */
export type ConsentChange = { answers: Map<string, boolean>; flags: ConsentState['flags'] }

const channels: Channel[] = ['email', 'sms']

const answerableTypes = (types: ConsentType[], channel: string) =>
  types.filter(type => type.active && !type.mandatory && type.channels.has(channel))

/** Applies the consent fields of a body. Returns undefined if one of them is refused. */
export function applyConsents(
  { flags, answers: current }: ConsentState,
  body: Values,
  types: ConsentType[],
): ConsentChange | undefined {
  const answers = new Map<string, boolean>()
  const next = { ...flags }
  for (const channel of channels) {
    const flag = body[`${channel}_consent`]
    const openTypes = answerableTypes(types, channel)
    if (flag === true) {
      const defaultType = openTypes.find(type => type.channels.get(channel))
      if (!defaultType) return undefined
      answers.set(`${defaultType.id}:${channel}`, true)
    }
    if (flag === false && openTypes.length === 0) next[channel] = false
    if (flag === false) for (const { id } of openTypes) answers.set(`${id}:${channel}`, false)
  }
  for (const { consent_type_id, channel, state } of (body.consents ?? []) as Values[]) {
    const key = `${consent_type_id}:${channel}`
    if (!answerableTypes(types, String(channel)).some(type => type.id === consent_type_id)) return undefined
    answers.set(key, state as boolean)
  }
  for (const channel of channels)
    if ([...answers.keys()].some(key => key.endsWith(channel)))
      next[channel] = answerableTypes(types, channel).some(
        ({ id }) => answers.get(`${id}:${channel}`) ?? current.get(`${id}:${channel}`),
      )
  return { answers, flags: next }
}

/** Whether a body answers one question twice, which is wrong whatever is stored. */
export function answersTwice({ consents }: Values): boolean {
  const questions = ((consents ?? []) as Values[]).map(
    ({ consent_type_id, channel }) => `${consent_type_id} ${channel}`,
  )
  return new Set(questions).size < questions.length
}

/** Returns the effective consents as a read shows them, without the time of the answer. */
export function effectiveConsents({ answers }: Pick<ConsentState, 'answers'>, types: ConsentType[]): Values[] {
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
