"""A branch reads and assigns variables only when it is taken, whatever control flow is switched on."""

import ast
from pathlib import Path
from typing import Any, Iterator

import pytest

import cluster
from cluster.runtime.tensors import cond
from cluster.runtime.tf_compat import tf


@pytest.fixture(params=["v1", "v2"])
def switched_on(request: Any) -> Iterator[bool]:
    if request.param == "v2":
        tf.enable_control_flow_v2()
    yield request.param == "v2"
    tf.disable_control_flow_v2()


def test_a_branch_for_variables_with_a_value_asks_no_other_and_may_assign(switched_on: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        held = tf.get_variable("held", [], initializer=tf.ones_initializer(), use_resource=False)
        has_value = tf.is_variable_initialized(held)
        found = cond(has_value, lambda: tf.assign_add(held, 1.0), lambda: tf.constant(7.0))
        assert tf.control_flow_v2_enabled() == switched_on  # the job's own branches are as it has asked
        before = session.run(found)
        session.run(held.initializer)
        assert (before, session.run(found), session.run(held)) == (7, 2, 2)


def test_inside_a_function_the_switch_stays_as_it_was(switched_on: bool) -> None:
    def larger(x: Any) -> Any:
        return cond(x > 2, lambda: x, lambda: tf.constant(2.0))

    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.wrap_function(larger, [tf.TensorSpec([], tf.float32)])(tf.constant(1.0))
        assert tf.control_flow_v2_enabled() == switched_on
        assert session.run(found) == 2


def test_nothing_here_chooses_between_branches_in_another_way() -> None:
    folder = Path(cluster.__file__).parent
    others = [path for path in folder.rglob("*.py") if path != folder / "runtime/tensors.py"]
    used = {
        f"{path.relative_to(folder)}: tf.{node.attr}"
        for path in others
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "tf"
        if node.attr in ("cond", "case", "while_loop")
    }
    assert not used
