// What the settings say about the person whom a job belongs to. Pure.
import { admissionOf, channelNamed, type Admission, type JobPerson, type ParleySettings } from "@parley/contracts";

/** Undefined: the owner's job, or an account that was added while the cluster runs, whose settings the store has. */
export function admissionOfJob(
  { channels }: Pick<ParleySettings, "channels">,
  { person }: { person?: JobPerson | undefined },
): Admission | undefined {
  if (person === undefined || channelNamed(person.channel) === undefined) return undefined;
  const policy = channels[person.channel]?.[person.account];
  return policy === undefined ? undefined : admissionOf(policy, person);
}
